//! The locks of the family as roots of regions: zeroed memory, sizes, what a reset does to them,
//! and the hashes of layouts.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "region/scratch.rs"]
#[allow(dead_code, reason = "the tests of regions use all of it")]
mod scratch;

use scratch::{Scratch, turn};
use std::collections::HashSet;
use std::fs;
use ulocks_core::meter::Counted;
use ulocks_core::raw::{RawMutex, RawRwLock};
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::sync::{AtomicU8, AtomicU32, AtomicU64};
use ulocks_core::{Shared, api};
use ulocks_psrwlock::{BULK, Central, NESTED, PhaseFair, RawPsRwLock, ReadersFirst, Sifted, URGENT};
use ulocks_shm::{Attached, Options, Region, SharedSafe};
use ulocks_testkit::Child;
use ulocks_unfair::RawAsymMutex;

const THREE: u8 = BULK | URGENT | NESTED;
type Counting = Shared<Adaptive, Counted>;
type PsRaw<const C: u8 = THREE, P = Shared, F = PhaseFair, R = Central> = RawPsRwLock<Sifted<C, P, F, R>>;

const _: () = assert!(size_of::<api::Mutex<ulocks_unfair::RawBargingMutex<Shared>, u32>>() == 8);
const _: () = assert!(size_of::<api::Mutex<RawAsymMutex<Shared>, u32>>() == 8);
const _: () = assert!(size_of::<api::RwLock<PsRaw, u64>>() == 24);
const _: () = assert!(size_of::<api::Condvar<ulocks_unfair::RawBargingMutex<Shared>>>() == 16);

fn options<R: SharedSafe>() -> Options<R> {
    Region::options().participants(1)
}

/// A root with a lock between two numbers, each of which a reset must keep.
type Between<L> = [api::Mutex<L, [u64; 3]>; 3];

const BYTE: u8 = 0xa5;
const GARBAGE: u64 = u64::from_ne_bytes([BYTE; 8]);

/// Makes each byte of the root garbage, while no process is attached.
fn scribble<R: SharedSafe>(scratch: &Scratch) {
    let mut bytes = fs::read(scratch.path()).expect("a region");
    let root = 4096 + 4096;
    bytes[root..root + size_of::<R>()].fill(BYTE);
    fs::write(scratch.path(), bytes).expect("a region");
}

/// Zeroes are an unlocked lock, another process shares it, and a reset unlocks it whatever its
/// bytes are, and keeps the data of it and of its neighbours.
fn mutex<L: RawMutex + SharedSafe>(name: &str) {
    let scratch = Scratch::new();
    let region = options::<Between<L>>().create(scratch.path(), 0o600).expect("a region");
    for lock in region.iter() {
        assert!(!lock.is_locked(), "{name}");
        let mut data = lock.try_lock().unwrap_or_else(|| panic!("{name}: zeroes are locked"));
        assert_eq!(*data, [0; 3], "{name}");
        *data = [1, 2, 3];
    }
    let children: Vec<_> = (0..2)
        .map(|_| {
            Child::runs(|| {
                let own = options::<Between<L>>().open(scratch.path()).expect("the region");
                for _ in 0..500 {
                    own[1].lock()[0] += 1;
                }
            })
        })
        .collect();
    children.into_iter().for_each(Child::ends);
    std::mem::forget(region[1].lock());
    drop(region);

    let region = options::<Between<L>>().open(scratch.path()).expect("the region");
    assert_eq!(region.attached(), Attached::Reset, "{name}");
    let held: Vec<_> = region.iter().map(|lock| lock.try_lock().expect(name)).collect();
    assert_eq!([*held[0], *held[1], *held[2]], [[1, 2, 3], [1001, 2, 3], [1, 2, 3]], "{name}");
    drop(held);
    drop(region);

    scribble::<Between<L>>(&scratch);
    let region = options::<Between<L>>().open(scratch.path()).expect("the region");
    for lock in region.iter() {
        let mut data = lock.try_lock().unwrap_or_else(|| panic!("{name}: the reset left it locked"));
        assert_eq!(*data, [GARBAGE; 3], "{name}");
        *data = [0; 3];
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..500).for_each(|_| region[2].lock()[2] += 1));
        }
    });
    assert_eq!(*region[2].lock(), [0, 0, 1500], "{name}");
}

#[test]
fn mutexes_in_a_region() {
    let _turn = turn();
    mutex::<ulocks_unfair::RawBargingMutex<Shared>>("mutex");
    mutex::<ulocks_unfair::RawBargingMutex<Shared<NoSpin, Counted>>>("mutex-counted");
    mutex::<RawAsymMutex<Shared>>("asym");
    mutex::<RawAsymMutex<Counting>>("asym-counted");
}

#[test]
fn locks_inside_of_data() {
    let _turn = turn();
    type Raw = ulocks_unfair::RawBargingMutex<Shared>;
    type Outer = api::Mutex<RawAsymMutex<Shared>, [api::RwLock<PsRaw, u32>; 2]>;
    type Outermost = api::Mutex<Raw, Outer>;
    let scratch = Scratch::new();
    let region = options::<Outermost>().create(scratch.path(), 0o600).expect("a region");
    *region.lock().lock()[1].write() = 4;
    drop(region);
    scribble::<Outermost>(&scratch);
    let region = options::<Outermost>().open(scratch.path()).expect("the region");
    let outer = region.try_lock().expect("the outermost lock");
    let inner = outer.try_lock().expect("the inner lock");
    for lock in inner.iter() {
        assert_eq!(u64::from(*lock.try_write().expect("the locks inside of the inner one")), GARBAGE >> 32);
    }
}

fn rwlock<L: RawRwLock + SharedSafe>(name: &str) {
    type Pair<L> = [api::RwLock<L, u64>; 2];
    let scratch = Scratch::new();
    let region = options::<Pair<L>>().create(scratch.path(), 0o600).expect("a region");
    for lock in region.iter() {
        assert_eq!(*lock.try_read().expect(name), 0);
        *lock.try_write().expect(name) = 5;
    }
    Child::runs(|| {
        let own = options::<Pair<L>>().open(scratch.path()).expect("the region");
        *own[1].write() += *own[0].read();
    })
    .ends();
    std::mem::forget(region[0].read());
    std::mem::forget(region[1].write());
    drop(region);

    let region = options::<Pair<L>>().open(scratch.path()).expect("the region");
    assert_eq!((*region[0].try_write().expect(name), *region[1].try_write().expect(name)), (5, 10), "{name}");
    drop(region);

    scribble::<Pair<L>>(&scratch);
    let region = options::<Pair<L>>().open(scratch.path()).expect("the region");
    for lock in region.iter() {
        assert_eq!(*lock.try_write().expect(name), GARBAGE, "{name}");
        assert_eq!(*lock.read(), GARBAGE, "{name}");
    }
}

#[test]
fn reader_writer_locks_in_a_region() {
    let _turn = turn();
    rwlock::<PsRaw>("psrw");
    rwlock::<RawPsRwLock<Shared>>("psrw-policy");
    rwlock::<PsRaw<BULK, Counting, ReadersFirst>>("psrw-readers-first");
}

/// What a dead thread had has come back, and all else is as it was left: whoever adds the permits
/// again after a reset has them twice.
#[test]
fn a_robust_semaphore_keeps_its_values_over_a_reset() {
    use ulocks_shm::{SemArray, Semaphore};
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Root {
        one: Semaphore<8>,
        array: SemArray<2, 8, 2>,
    }
    let _turn = turn();
    let scratch = Scratch::new();
    Child::runs(|| {
        let own = options::<Root>().create(scratch.path(), 0o600).expect("a region");
        // SAFETY: the guards are forgotten, and this process ends.
        let me = unsafe { own.join() }.expect("a slot");
        own.one.add_permits(&me, 4).expect("values");
        own.array.set(&me, 1, 6).expect("a value");
        std::mem::forget(own.one.acquire_many(&me, 3).expect("permits"));
        std::mem::forget(own.array.acquire(&me, ulocks_semarray::Set::new().sub(1, 2)).expect("a set"));
        assert_eq!((own.one.available_permits(), own.array.values()), (1, [0, 4]));
        Child::exits()
    })
    .ends();
    for _ in 0..2 {
        let region = options::<Root>().open(scratch.path()).expect("the region");
        assert_eq!(region.attached(), Attached::Reset);
        assert_eq!((region.one.available_permits(), region.array.values()), (4, [0, 6]));
    }
}

#[test]
fn a_condition_variable_in_a_region() {
    let _turn = turn();
    type Raw = ulocks_unfair::RawBargingMutex<Shared>;
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Flag {
        is_set: api::Mutex<Raw, u8>,
        changed: api::Condvar<Raw>,
    }
    let scratch = Scratch::new();
    drop(options::<Flag>().create(scratch.path(), 0o600).expect("a region"));
    scribble::<Flag>(&scratch);
    let region = options::<Flag>().open(scratch.path()).expect("the region");
    *region.is_set.lock() = 0;
    let child = Child::runs(|| {
        let mut is_set = region.is_set.lock();
        while *is_set == 0 {
            region.changed.wait(&mut is_set);
        }
    })
    .sleeps(|| true);
    *region.is_set.lock() = 1;
    region.changed.notify_one();
    child.ends();
}

/// Types that differ in what a program does with the bytes have different hashes.
#[test]
fn hashes_differ() {
    fn hash<T: SharedSafe>() -> u64 {
        T::LAYOUT
    }
    type Plain = ulocks_unfair::RawBargingMutex<Shared>;
    let hashes = [
        hash::<()>(),
        hash::<u8>(),
        hash::<i8>(),
        hash::<u16>(),
        hash::<i16>(),
        hash::<u32>(),
        hash::<i32>(),
        hash::<u64>(),
        hash::<i64>(),
        hash::<AtomicU8>(),
        hash::<AtomicU32>(),
        hash::<AtomicU64>(),
        hash::<[u32; 0]>(),
        hash::<[u32; 2]>(),
        hash::<[u32; 3]>(),
        hash::<[[u32; 3]; 1]>(),
        hash::<Plain>(),
        hash::<ulocks_unfair::RawBargingMutex<Counting>>(),
        hash::<RawAsymMutex<Shared>>(),
        hash::<PsRaw>(),
        hash::<PsRaw<BULK>>(),
        hash::<PsRaw<BULK, Shared, ReadersFirst>>(),
        hash::<api::Condvar<Plain>>(),
        hash::<api::Mutex<Plain, u32>>(),
        hash::<api::Mutex<Plain, i32>>(),
        hash::<api::Mutex<Plain, u64>>(),
        hash::<api::Mutex<Plain, api::Mutex<Plain, u32>>>(),
        hash::<api::RwLock<PsRaw, u32>>(),
    ];
    assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), hashes.len());
    // How waiters spin is no part of a layout.
    assert_eq!(hash::<Plain>(), hash::<ulocks_unfair::RawBargingMutex<Shared<NoSpin>>>());
}

/// Files live longer than programs: these hashes are in files.
#[test]
fn hashes_stay_the_same() {
    assert_eq!(ulocks_shm::layout(&[]), 0xcbf2_9ce4_8422_2325);
    assert_eq!(ulocks_shm::layout(&[1, 2]), 0x7717_9803_63c8_e066);
    assert_eq!(u64::LAYOUT, 0xf64e_c15f_150c_f7fe);
    assert_eq!(<[AtomicU32; 4]>::LAYOUT, 0x3d38_433e_00a6_2967);
}
