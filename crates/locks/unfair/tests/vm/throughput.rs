//! The throughput mutex.

use crate::barging::sampled;
use crate::overtaking::owed_is_next;
use crate::queueing;
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::Advice;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_testkit::model;
use ulocks_testkit::thread::{together, with};
use ulocks_unfair::{After, HandOff, RawThroughputMutex, ThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// The mutex is owed to each waiter that was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;
/// One thread is to be active, so that the candidate naps.
type Solo = RawThroughputMutex<Private<NoSpin>, After<50_000, AlwaysSolo>>;

pub enum AlwaysSolo {}

impl Advice for AlwaysSolo {
    const ALWAYS_SOLO: bool = true;
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, Strict = 3, Solo = 4],
    exhaustive: {
        preemptions: 4,
        exclusion: [Sleeper, Strict, Solo],
        no_lost_wake: [Sleeper, Strict, Solo],
        timeout_vs_unlock: [Sleeper, Strict, Solo],
        last_unlocker_frees: [Sleeper, Strict, Solo],
    },
    try_lock: [Mutex],
    interrupted: [Sleeper = 1, Strict = 2, Solo = 3],
    deaths: [Mutex = 1, Sleeper = 2, Strict = 3],
}

#[test]
fn nobody_overtakes_whom_the_mutex_is_owed_to() {
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 1), move || {
            _ = owed_is_next::<Private<NoSpin>, HandOff>(vec![2; threads], || {})
        });
        explore(sampled(threads, 2), move || _ = owed_is_next::<Private, HandOff>(vec![2; threads], || {}));
        explore(sampled(threads, 3), move || {
            _ = owed_is_next::<Private<NoSpin>, After>(vec![2; threads], || {})
        });
        explore(sampled(threads, 4), move || {
            _ = owed_is_next::<Private<NoSpin>, After<50_000, AlwaysSolo>>(vec![3; threads], || {})
        });
    }
}

#[test]
fn a_waiter_that_is_chosen_too_late_leaves() {
    fn check<L: RawMutex + Send + Sync + 'static>(seed: u64) {
        for waiters in [1, 2, 4] {
            let config = Config { seed, ..Config::sampled(6_000 / waiters as u64) };
            explore(config, move || model::give_up_beside_a_barger::<L>(waiters));
        }
    }
    check::<Sleeper>(1);
    check::<Strict>(2);
    check::<Mutex>(3);
    let few = Config { stale: 0, preemptions: Some(4), ..Config::exhaustive() };
    explore(few, || model::give_up_beside_a_barger::<Sleeper>(1));
}

#[test]
fn waiters_keep_their_order() {
    for threads in [3, 4, 8] {
        for timed in [false, true] {
            let order = |seed, model: fn(usize, usize, bool)| {
                explore(sampled(threads, seed), move || model(threads, 2, timed));
            };
            order(1, queueing::waiters_keep_their_order::<NoSpin, HandOff>);
            order(2, queueing::waiters_keep_their_order::<Adaptive, HandOff>);
            order(3, queueing::waiters_keep_their_order::<NoSpin, After>);
        }
    }
}

/// No other access to the mutex follows that would make up for one that orders nothing.
#[test]
fn a_try_lock_sees_what_the_last_holder_did() {
    explore(Config::exhaustive(), || {
        let count = Arc::new(ThroughputMutex::new(0));
        together(2, move |me| {
            if me == 0 {
                *count.lock() += 1;
            } else if let Some(mut held) = count.try_lock() {
                *held += 1;
            }
        });
    });
    // Beside a waiter the word of a free mutex is not zero: there is a second attempt.
    explore(Config { preemptions: Some(3), ..Config::exhaustive() }, || {
        let count = Arc::new(ThroughputMutex::new(0));
        let held = count.lock();
        let waiter = with(&count, |count| *count.lock() += 1);
        let tries = with(&count, |count| count.try_lock().map(|mut held| *held += 1));
        drop(held);
        waiter.join().unwrap();
        tries.join().unwrap();
    });
}
