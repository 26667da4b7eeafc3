//! Threads that die while they use the lock.

use crate::{Short, sampled};
use core::time::Duration;
use ulocks_calock::{Every, RawCalock, seeded};
use ulocks_core::model::{Config, Deaths, Strategy, Survivors, explore, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, spawn};

/// As the longest sleep of a waiter between processes.
type Long = Every<1_000_000_000>;
type BetweenProcesses = RawCalock<Shared<NoSpin>, Long>;
type Rare = RawCalock<Shared<NoSpin>, Long, { seeded::RARELY_WAKES }>;

/// Up to two die, somewhere.
fn mortal(threads: usize, seed: u64) -> Config {
    Config { deaths: Deaths::Threads(2), strategy: Strategy::Random, ..sampled(threads, seed) }
}

fn death<L: RawMutex + Send + Sync + 'static>(seed: u64, timeouts: bool) {
    for threads in [3, 4, 8] {
        let config = Config { survivors: Survivors::MayBlock, timeouts, ..mortal(threads, seed) };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}

/// A dead holder holds up the others. Between processes they look now and then whether somebody is dead, for ever, and so the
/// model lets no time pass.
#[test]
fn a_death_lets_nobody_in() {
    death::<RawCalock<Private<NoSpin>, Short, { seeded::ALWAYS_WAKES }>>(1, false);
    death::<RawCalock<Shared<NoSpin>, Short, { seeded::ALWAYS_WAKES }>>(2, false);
}

/// Waiters that die, or give up, while the lock is held, and one that waits for it.
fn dead_waiters_hold_up_nobody<L: RawMutex + Send + Sync + 'static>(waiters: usize) {
    let lock = Arc::new(new_lock::<L>());
    let held = lock.lock();
    let patient = {
        let lock = Arc::clone(&lock);
        spawn(move || {
            let token = lock.lock();
            // SAFETY: locked the line before.
            unsafe { lock.unlock(token) };
        })
    };
    let doomed: Vec<_> = (0..waiters)
        .map(|_| {
            let lock = Arc::clone(&lock);
            spawn(move || lock.lock_until(Deadline::after(Duration::from_secs(4))).is_some())
        })
        .collect();
    for doomed in doomed {
        assert_ne!(doomed.join().ok(), Some(true), "two hold the lock");
    }
    // SAFETY: locked above.
    unsafe { lock.unlock(held) };
    _ = patient.join();
}

#[test]
fn a_dead_waiter_holds_up_nobody() {
    for waiters in [1, 2, 4] {
        explore(mortal(waiters + 1, 1), move || dead_waiters_hold_up_nobody::<BetweenProcesses>(waiters));
        explore(mortal(waiters + 1, 2), move || dead_waiters_hold_up_nobody::<Rare>(waiters));
    }
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_found() {
    finds_bug_saying("livelock", Config { executions: 10_000, ..mortal(3, 1) }, || {
        dead_waiters_hold_up_nobody::<RawCalock<Shared<NoSpin>, Long, { seeded::TRUSTS_THE_PROMOTED }>>(2);
    });
}
