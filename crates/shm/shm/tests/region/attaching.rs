//! Several processes and several mappings of one region.

use super::Root;
use super::joined::joined;
use super::scratch::{Scratch, Word, alone, set_word, turn};
use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::time::Duration;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Attached, Options, Region, RegionError};
use ulocks_testkit::Child;

const ROUNDS: u64 = 2_000;

fn options() -> Options<Root> {
    Region::options().wait(Duration::from_secs(60))
}

fn count(region: &Root) {
    for _ in 0..ROUNDS {
        *region.total.lock() += 1;
    }
}

#[test]
fn processes_at_different_addresses_share_locks_and_data() {
    let (_turn, scratch) = alone();
    let region = options().create(scratch.path(), 0o600).expect("a region");
    let children: Vec<_> = (0..3)
        .map(|_| {
            Child::runs(|| {
                // The parent's mapping is inherited, so this one is elsewhere.
                let own = options().open(scratch.path()).expect("the region");
                assert_eq!(own.attached(), Attached::Joined);
                assert_ne!(own.base(), region.base());
                count(&own);
            })
        })
        .collect();
    count(&region);
    children.into_iter().for_each(Child::ends);
    assert_eq!(*region.total.lock(), 4 * ROUNDS);
}

#[test]
fn an_inherited_mapping_is_the_same_region() {
    let _turn = turn();
    let region = options().anonymous().expect("a region");
    let children: Vec<_> = (0..3).map(|_| Child::runs(|| count(&region))).collect();
    children.into_iter().for_each(Child::ends);
    assert_eq!(*region.total.lock(), 3 * ROUNDS);
}

/// Otherwise nobody would reset the region when the parent is gone. No thread of the child takes
/// part.
#[test]
fn a_child_detaches_although_its_parent_takes_part() {
    let (_turn, scratch) = alone();
    let mut region = Some(options().create(scratch.path(), 0o600).expect("a region"));
    std::mem::forget(joined(region.as_ref().expect("it is there")));
    Child::runs(|| {
        let region = region.take().expect("it is there");
        region.with_member(|_| ()).expect("a slot for the child");
        region.detach().expect("no thread of the child takes part");
        let open = fs::read_dir("/proc/self/fd").expect("a /proc");
        let mut open = open.filter_map(|open| fs::read_link(open.expect("a descriptor").path()).ok());
        assert!(open.all(|file| file != scratch.path()), "the child is attached still");
    })
    .ends();
    assert_eq!(options().open(scratch.path()).expect("the region").attached(), Attached::Joined);
    let region = region.expect("the parent's");
    assert_eq!(region.detach().expect_err("a thread of the parent takes part").count(), 1);
}

#[test]
fn a_child_that_drops_its_region_does_not_detach_the_parent() {
    let (_turn, scratch) = alone();
    let mut region = Some(options().create(scratch.path(), 0o600).expect("a region"));
    Child::runs(|| drop(region.take())).ends();
    let region = region.expect("the parent has it still");
    assert_eq!(options().open(scratch.path()).expect("the region").attached(), Attached::Joined);
    assert_eq!(*region.total.lock(), 0);
}

#[test]
fn a_descriptor_is_the_same_region_and_not_the_same_lock() {
    let _turn = turn();
    let region = options().anonymous().expect("a region");
    *region.total.lock() = 5;
    std::mem::forget(region.total.lock());
    Child::runs(|| {
        let own = options().from_fd(region.fd()).expect("the region");
        // Had it found itself alone, it would have unlocked the parent's lock.
        assert_eq!(own.attached(), Attached::Joined);
        assert!(own.total.is_locked());
    })
    .ends();
}

#[test]
fn an_anonymous_region_outlives_its_creator_and_is_sealed() {
    let _turn = turn();
    let region = options().anonymous().expect("a region");
    *region.total.lock() = 5;
    let copy = std::fs::File::from(region.fd().try_clone_to_owned().expect("a copy"));
    for size in [0, 1 << 20] {
        assert_eq!(copy.set_len(size).expect_err("it is sealed").raw_os_error(), Some(libc::EPERM));
    }
    drop(region);
    let region = options().from_fd(&copy).expect("the region");
    // The copy is the creator's open file, which is attached until it is closed.
    assert_eq!((region.attached(), *region.total.lock()), (Attached::Joined, 5));
}

#[test]
fn two_mappings_of_one_process() {
    let (_turn, scratch) = alone();
    let one = options().create(scratch.path(), 0o600).expect("a region");
    let two = options().open(scratch.path()).expect("the region");
    assert_eq!(two.attached(), Attached::Joined);
    assert_ne!(one.base(), two.base());
    let held = one.total.lock();
    assert!(two.total.try_lock().is_none());
    drop(held);
    std::thread::scope(|scope| {
        scope.spawn(|| count(&one));
        scope.spawn(|| count(&two));
    });
    drop(one);
    assert_eq!(*two.total.lock(), 2 * ROUNDS);
}

/// No process is attached all the time, so some attach alone and reset. Had one reset the locks of
/// another, two would have been inside at once, and a count would be lost. Each epoch has one
/// beginner.
#[test]
fn a_reset_is_never_beside_another_process() {
    const TIMES: u64 = 300;
    const PROCESSES: u64 = 4;
    let _turn = turn();
    type Epochs = [AtomicU32; 2048];
    let scratch = Scratch::new();
    let epochs = Region::<Epochs>::options().anonymous().expect("a region");
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Child::runs(|| {
                for _ in 0..TIMES {
                    let region = options().create_or_open(scratch.path(), 0o600).expect("the region");
                    if region.attached() != Attached::Joined {
                        let epoch = usize::try_from(region.epoch()).expect("a small number");
                        assert_eq!(epochs[epoch].swap(1, Relaxed), 0, "epoch {epoch} has begun twice");
                    }
                    *region.total.lock() += 1;
                }
            })
        })
        .collect();
    children.into_iter().for_each(Child::ends);
    let region = options().open(scratch.path()).expect("the region");
    assert_eq!(*region.total.lock(), PROCESSES * TIMES);
    let begun = epochs.iter().map(|epoch| u64::from(epoch.load(Relaxed))).sum::<u64>();
    assert_eq!((region.attached(), region.epoch()), (Attached::Reset, begun + 1));
}

#[test]
fn another_process_that_resets_is_waited_for() {
    let (_turn, scratch) = alone();
    drop(options().create(scratch.path(), 0o600).expect("a region"));
    let bytes = scratch.bytes();
    let file = OpenOptions::new().read(true).write(true).open(scratch.path()).expect("the file");
    let lock = |kind: libc::c_int| {
        // SAFETY: all-zero bytes are a `flock`.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_len = 1;
        // SAFETY: the descriptor is open, and `lock` is a `flock`.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }, 0);
    };
    lock(libc::F_WRLCK);
    for result in [
        options().wait(Duration::from_millis(5)).open(scratch.path()),
        options().wait(Duration::ZERO).create_or_open(scratch.path(), 0o600),
    ] {
        assert!(matches!(result, Err(RegionError::Busy)), "{result:?}");
    }
    assert_eq!(scratch.bytes(), bytes);
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| options().open(scratch.path()));
        lock(libc::F_UNLCK);
        let region = opener.join().expect("the opener").expect("the region");
        assert_eq!(region.plain.load(Relaxed), 0);
    });
}

/// In a container the id of the boot may be another, and without `/proc` there is none. A
/// process that is attached runs in this boot.
#[test]
fn another_id_of_the_boot_keeps_nobody_from_a_region_that_is_used() {
    let (_turn, scratch) = alone();
    let region = options().create(scratch.path(), 0o600).expect("a region");
    let held = region.total.lock();
    for boot in [0, 1] {
        let mut bytes = scratch.bytes();
        set_word(&mut bytes, Word::Boot, boot);
        fs::write(scratch.path(), &bytes).expect("the file is writable");
        let joined = options().open(scratch.path()).expect("the region");
        assert_eq!((joined.attached(), joined.epoch()), (Attached::Joined, 1));
        assert!(joined.total.is_locked());
    }
    drop(held);
    drop(region);
    assert_eq!(options().open(scratch.path()).expect("the region").attached(), Attached::Reset);
}
