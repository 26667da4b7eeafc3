//! What a reset of the region means for the values of its directory.

use super::joined::joined;
use super::scratch::{Scratch, alone};
use super::{Names, Plain, Robust, open};
use std::time::Duration;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::directory::Fresh;
use ulocks_shm::{Attached, LockError, Region, SharedSafe};
use ulocks_testkit::Child;

/// A process that was alone ended with the locks "plain", "robust" and "clean" held, after it had
/// changed what two of them protect.
fn left_locked(scratch: &Scratch) {
    Child::runs(|| {
        let region = open(scratch);
        let me = joined(&region);
        let plain = region.find_or_create::<Plain>(&me, "plain").expect("room");
        let robust = region.find_or_create::<Robust>(&me, "robust").expect("room");
        let mut held = plain.lock();
        *held = 7;
        std::mem::forget(held);
        let mut held = robust.lock(&me).expect("no holder has died");
        *held = 8;
        Child::exits()
    })
    .ends();
}

#[test]
fn a_value_is_reset_when_it_is_first_asked_for() {
    let (_turn, scratch) = alone();
    left_locked(&scratch);
    let region = open(&scratch);
    assert_eq!(region.attached(), Attached::Reset);
    let me = joined(&region);
    let plain = region.find::<Plain>(&me, "plain").expect("it is kept");
    assert!(!plain.is_locked());
    assert_eq!(*plain.lock(), 7);
    let robust = region.find::<Robust>(&me, "robust").expect("it is kept");
    match robust.lock(&me) {
        Err(LockError::OwnerDied(mut guard)) => {
            assert_eq!(*guard, 8);
            guard.mark_consistent();
        }
        other => panic!("{other:?}"),
    }
    assert!(robust.lock(&me).is_ok());
}

/// The first thread after a reset resets, the others do not: the lock is held by then.
#[test]
fn a_value_is_reset_once_in_an_epoch() {
    let (_turn, scratch) = alone();
    left_locked(&scratch);
    let region = open(&scratch);
    let me = joined(&region);
    let plain = region.find::<Plain>(&me, "plain").expect("it is kept");
    let held = plain.lock();
    assert!(region.find::<Plain>(&me, "plain").expect("it is kept").is_locked());
    Child::runs(|| {
        let own = open(&scratch);
        assert_eq!(own.attached(), Attached::Joined);
        let me = joined(&own);
        assert!(own.find::<Plain>(&me, "plain").expect("it is kept").is_locked());
        assert!(own.find_or_create::<Plain>(&me, "plain").expect("it is kept").is_locked());
    })
    .ends();
    drop(held);
}

#[test]
fn a_value_is_prepared_in_each_epoch() {
    let (_turn, scratch) = alone();
    let expected = [Fresh::Created, Fresh::Reset, Fresh::Reset];
    for expected in expected {
        let region = open(&scratch);
        let me = joined(&region);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let left = region.find_or_create_with(&me, "left", |left: &AtomicU32, fresh| {
                seen.push(fresh);
                left.store(3, Relaxed);
            });
            left.expect("room").fetch_sub(1, Relaxed);
        }
        assert_eq!(seen, [expected]);
        assert_eq!(region.find::<AtomicU32>(&me, "left").expect("it is kept").load(Relaxed), 0);
    }
}

/// The process that resets a value is killed before it is done. The next one resets it again.
#[test]
fn a_reset_that_was_cut_off_is_made_again() {
    let (_turn, scratch) = alone();
    left_locked(&scratch);
    let region = open(&scratch);
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let victim = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let _ = own.find_or_create_with(&me, "plain", |plain: &Plain, fresh| {
            assert_eq!(fresh, Fresh::Reset);
            std::mem::forget(plain.lock());
            step.store(1, Relaxed);
            Child::pauses();
        });
    })
    .sleeps(|| step.load(Relaxed) == 1);
    victim.killed();
    let me = joined(&region);
    me.set_recheck(Duration::MAX);
    assert!(!region.find::<Plain>(&me, "plain").expect("it is kept").is_locked());
}

/// A process ended while it held the directory lock, and was alone. Its slot is free after the
/// reset, so the lock's word would name the next thread that joins.
#[test]
fn the_directory_lock_of_a_process_that_ended() {
    let (_turn, scratch) = alone();
    Child::runs(|| {
        let region = open(&scratch);
        let me = joined(&region);
        let _ = region.find_or_create_with(&me, "half", |_: &u64, _| Child::exits());
    })
    .ends();
    let region = open(&scratch);
    let me = joined(&region);
    assert_eq!(region.entries().count(), 0);
    region.find_or_create::<Plain>(&me, "half").expect("the directory lock is free");
}

/// A directory that is a field of a root, beside other locks.
#[test]
fn a_directory_in_a_struct() {
    #[derive(SharedSafe)]
    #[repr(C)]
    struct Root {
        first: Plain,
        names: Names,
        last: Plain,
    }
    let (_turn, scratch) = alone();
    let open = || Region::<Root>::options().create_or_open(scratch.path(), 0o600).expect("a region");
    {
        let region = open();
        let me = joined(&region);
        std::mem::forget(region.names.find_or_create::<Plain>(&me, "named").expect("room").lock());
        std::mem::forget((region.first.lock(), region.last.lock()));
    }
    let region = open();
    let me = joined(&region);
    assert!(!region.first.is_locked() && !region.last.is_locked());
    assert!(!region.names.find::<Plain>(&me, "named").expect("it is kept").is_locked());
}
