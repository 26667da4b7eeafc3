//! Processes that are killed while they use a directory.

use super::joined::joined;
use super::scratch::alone;
use super::{Plain, open};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, AtomicU64};
use ulocks_shm::directory::Fresh;
use ulocks_shm::{Directory, DirectoryError, Region};
use ulocks_testkit::Child;

/// The creator is killed with the value prepared by half. The next process waits for nothing, and
/// gets a value of zeroes to prepare.
#[test]
fn a_creator_that_is_killed_leaves_no_part_of_an_entry() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let me = joined(&region);
    region.find_or_create::<u64>(&me, "first").expect("room");
    let victim = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let _ = own.find_or_create_with(&me, "half", |new: &[AtomicU64; 2], _| {
            new[0].store(1, Relaxed);
            step.store(1, Relaxed);
            Child::pauses();
        });
    })
    .sleeps(|| step.load(Relaxed) == 1);
    victim.killed();
    assert_eq!(region.find::<[AtomicU64; 2]>(&me, "half").map(drop), Err(DirectoryError::NotFound));
    let mut seen = None;
    // Another type, since the name is as good as new.
    let value = region.find_or_create_with(&me, "half", |new: &[AtomicU64; 3], fresh| {
        seen = Some((fresh, new.each_ref().map(|word| word.load(Relaxed))));
        new[2].store(3, Relaxed);
    });
    assert_eq!(value.expect("room")[2].load(Relaxed), 3);
    assert_eq!(seen, Some((Fresh::Created, [0; 3])));
}

/// A process waits for the directory lock when its holder is killed.
#[test]
fn a_waiter_of_a_killed_creator_goes_on() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let victim = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let _ = own.find_or_create_with(&me, "lock", |_: &Plain, _| {
            step.store(1, Relaxed);
            Child::pauses();
        });
    })
    .sleeps(|| step.load(Relaxed) == 1);
    let waiter = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        // Before Linux 5.16 a waiter finds the death only by its next look.
        if capabilities().has(Capability::Waitv) {
            me.set_recheck(Duration::MAX);
        }
        step.store(2, Relaxed);
        *own.find_or_create::<Plain>(&me, "lock").expect("room").lock() += 1;
    })
    .sleeps(|| step.load(Relaxed) == 2);
    victim.killed();
    waiter.ends();
    let me = joined(&region);
    assert_eq!(*region.find::<Plain>(&me, "lock").expect("the waiter's").lock(), 1);
}

#[test]
fn a_creator_that_panics_leaves_no_part_of_an_entry() {
    let region = Region::<Directory<2, 64>>::options().anonymous().expect("a region");
    let me = joined(&region);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = region.find_or_create_with(&me, "value", |new: &AtomicU64, _| {
            new.store(1, Relaxed);
            panic!("the preparation fails");
        });
    }));
    assert!(panicked.is_err());
    assert_eq!((me.held(), region.entries().count()), (0, 0));
    let value = region.find_or_create::<AtomicU64>(&me, "value").expect("room");
    assert_eq!(value.load(Relaxed), 0);
}
