//! The semaphore.

use crate::permits::Binary;
use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_fair::SemaphoreWith;
use ulocks_testkit::Child;
use ulocks_testkit::shared::{self, Mapping};
use ulocks_testkit::stress::Load;

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<Binary<Shared>>(load).check(load);
    shared::exclusion::<Binary<Shared<NoSpin>>>(load).check(load);
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    let load = Load::default();
    shared::timed::<Binary<Shared>>(load).check(load);
    shared::timed::<Binary<Shared<NoSpin>>>(load).check(load);
}

/// Permits go from one process to another, and a zeroed page is two semaphores without any.
#[test]
fn permits_cross_from_process_to_process() {
    const ROUNDS: u32 = 2_000;
    let mapping = Mapping::shared();
    // SAFETY: the page is zeroed and large enough; that zeroes are a semaphore without permits is
    // what the type promises.
    let [there, back] = unsafe { &*mapping.place::<[SemaphoreWith<Shared>; 2]>() };
    shared::forked(4, |me| {
        for _ in 0..ROUNDS {
            if me % 2 == 0 {
                there.release(2).expect("room");
                back.acquire_many(3).forget();
            } else {
                there.acquire_many(2).forget();
                back.release(3).expect("room");
            }
        }
    });
    assert_eq!((there.available_permits(), back.available_permits()), (0, 0));
}

/// The first of those that wait is killed, and one behind it: the others leave at the close.
#[test]
fn a_close_frees_the_processes_behind_a_dead_one() {
    let mapping = Mapping::shared();
    // SAFETY: as above.
    let semaphore = unsafe { &*mapping.place::<SemaphoreWith<Shared>>() };
    // More than can sleep near the first.
    let waiters: Vec<_> = (0..40_u32)
        .map(|me| {
            let waits =
                || assert!(semaphore.acquire_many_unless_closed(1 + me % 2).is_err(), "it got permits");
            Child::runs(waits).sleeps(|| semaphore.raw().waiters() == me + 1)
        })
        .collect();
    let mut others = Vec::new();
    for (nth, waiter) in waiters.into_iter().enumerate() {
        if [0, 5].contains(&nth) { waiter.killed() } else { others.push(waiter) }
    }
    semaphore.release(3).expect("room");
    semaphore.close();
    for other in others {
        other.ends();
    }
    assert_eq!((semaphore.available_permits(), semaphore.raw().waiters()), (3, 2));
    assert!(semaphore.try_acquire().is_none());
}
