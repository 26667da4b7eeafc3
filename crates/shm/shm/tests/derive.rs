//! `#[derive(SharedSafe)]`: hashes, and locks that it resets.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::mem::MaybeUninit;
use ulocks_core::Shared;
use ulocks_core::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use ulocks_shm::{
    Condvar, Directory, FairMutex, Mutex, Region, RegionError, RwLock, SemArray, Semaphore, SharedSafe,
};
use ulocks_testkit as _;
use ulocks_unfair::BargingMutexWith;

#[derive(SharedSafe)]
#[repr(C)]
struct Job {
    owner: AtomicU32,
    step: BargingMutexWith<[u8; 3], Shared>,
}

#[derive(SharedSafe)]
#[repr(C, align(64))]
struct Table<T, const N: usize> {
    jobs: [T; N],
    total: BargingMutexWith<u64, Shared>,
}

#[derive(SharedSafe)]
#[repr(transparent)]
struct Count(AtomicU64);

#[derive(SharedSafe)]
#[repr(C)]
struct Nothing;

fn hash<T: SharedSafe>() -> u64 {
    T::LAYOUT
}

#[test]
fn a_struct_is_a_root() {
    type Root = Table<Job, 5>;
    assert_eq!(align_of::<Root>(), 64);
    let region = Region::<Root>::options().anonymous().expect("a region");
    for job in &region.jobs {
        job.owner.store(1, Relaxed);
        job.step.lock()[2] = 2;
        *region.total.lock() += 3;
    }
    assert_eq!(*region.total.lock(), 15);
    assert_eq!(Region::<Count>::options().anonymous().expect("a region").0.load(Relaxed), 0);
    drop(Region::<Nothing>::options().anonymous().expect("a region"));
}

/// The locks of all fields and of all elements are unlocked; all else is kept.
#[test]
fn all_locks_are_reset_and_nothing_else() {
    let mut place = MaybeUninit::<Table<Job, 3>>::zeroed();
    // SAFETY: zeroes are a value of a type that is `SharedSafe`.
    let table = unsafe { place.assume_init_mut() };
    for (index, job) in (1..).zip(&table.jobs) {
        job.owner.store(index, Relaxed);
        let mut step = job.step.lock();
        step[1] = 9;
        std::mem::forget(step);
    }
    std::mem::forget(table.total.lock());
    // SAFETY: a place with a value, which only this thread uses; there is no guard.
    unsafe { SharedSafe::reset_locks(&raw mut *table) };
    for (index, job) in (1..).zip(&table.jobs) {
        assert!(!job.step.is_locked());
        assert_eq!((job.owner.load(Relaxed), *job.step.lock()), (index, [0, 9, 0]));
    }
    assert!(!table.total.is_locked());
}

/// The lock with the fewest slots, wherever it is.
#[test]
fn the_least_number_of_slots_is_that_of_a_part() {
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Disks<const N: usize> {
        names: Mutex<[u8; 8]>,
        table: RwLock<[u64; 2]>,
        free: Semaphore<N>,
    }

    fn least<T: SharedSafe>() -> usize {
        T::LEAST_SLOTS
    }
    type Plain<T> = ulocks_core::api::Mutex<ulocks_unfair::RawBargingMutex<Shared>, T>;

    for any in [least::<Table<Job, 3>>(), least::<Nothing>(), least::<Directory<2, 64>>(), least::<Condvar>()]
    {
        assert_eq!(any, usize::MAX);
    }
    assert_eq!([least::<RwLock<u64>>(), least::<Semaphore>(), least::<SemArray<2>>()], [64; 3]);
    assert_eq!([least::<Disks<8>>(), least::<Disks<80>>()], [8, 64]);
    assert_eq!(least::<[(AtomicU32, Disks<8>, SemArray<1, 16>); 2]>(), 8);
    assert_eq!([least::<RwLock<Disks<8>, 9>>(), least::<RwLock<Disks<8>, 7>>()], [8, 7]);
    assert_eq!(
        [least::<Mutex<Disks<8>>>(), least::<FairMutex<Disks<8>>>(), least::<Plain<Disks<8>>>()],
        [8; 3]
    );

    let options = Region::<Disks<80>>::options().participants(65);
    let error = options.anonymous().expect_err("64 slots");
    assert!(matches!(error, RegionError::TooFewSlots { participants: 65, slots: 64 }), "{error}");
}

#[test]
fn the_hash_is_of_types_and_places_and_not_of_names() {
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Renamed {
        by: AtomicU32,
        phase: BargingMutexWith<[u8; 3], Shared>,
    }
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Tuple(AtomicU32, BargingMutexWith<[u8; 3], Shared>);
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Swapped(BargingMutexWith<[u8; 3], Shared>, AtomicU32);
    #[derive(SharedSafe)]
    #[repr(C)]
    struct OtherData(AtomicU32, BargingMutexWith<[i8; 3], Shared>);
    #[derive(SharedSafe)]
    #[repr(C, align(32))]
    struct Aligned(AtomicU32, BargingMutexWith<[u8; 3], Shared>);
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Longer(AtomicU32, BargingMutexWith<[u8; 3], Shared>, Nothing);

    assert_eq!(hash::<Renamed>(), hash::<Job>());
    assert_eq!(hash::<Tuple>(), hash::<Job>());
    for other in [
        hash::<Swapped>(),
        hash::<OtherData>(),
        hash::<Aligned>(),
        hash::<Longer>(),
        hash::<Table<Job, 1>>(),
        hash::<Table<Job, 2>>(),
    ] {
        assert_ne!(other, hash::<Job>());
    }
    assert_ne!(hash::<Table<Job, 1>>(), hash::<Table<Job, 2>>());
    assert_ne!(hash::<Table<Job, 1>>(), hash::<Table<OtherData, 1>>());
}
