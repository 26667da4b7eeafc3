//! The mutex.

use crate::few::OnCpus;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::model;
use ulocks_testkit::order::Recorder;
use ulocks_testkit::suite::MANY;

type Mutex = RawFairMutex<Private>;
type Sleeper = RawFairMutex<Private<NoSpin>>;
/// One waiter is woken ahead, the next or the one behind it.
type OnTwo = OnCpus<Sleeper, 2>;
/// The window is narrow, or as wide as three.
type OnFour = OnCpus<Sleeper, 4>;
/// It grows from narrow to wide.
type OnSixteen = OnCpus<Sleeper, 16>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Mutex>(1);
        $check::<Sleeper>(2);
        $check::<OnTwo>(3);
        $check::<OnFour>(4);
        $check::<OnSixteen>(5);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(6_000 / threads as u64) }
}

// Threads of one process do not die alone: a node in the queue would be gone with its stack.
ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, OnTwo = 3, OnFour = 4, OnSixteen = 5],
    exhaustive: {
        exclusion: [Mutex, Sleeper],
        no_lost_wake: [Mutex, Sleeper],
        timeout_vs_unlock: [Sleeper],
        last_unlocker_frees: [Mutex, Sleeper],
    },
    try_lock: [Mutex],
    interrupted: [Sleeper = 1, OnTwo = 2, OnFour = 3],
}

fn many_rounds<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config { seed, ..Config::sampled(200) }, || model::no_lost_wake::<L>(4, 20));
}

#[test]
fn nobody_sleeps_for_ever_in_many_rounds() {
    on_each!(many_rounds);
}

fn give_up_while_held<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in [2, 3, 4, 8, 16] {
        explore(sampled(threads, seed), move || model::give_up_while_held::<L>(threads));
        // No deadline passes.
        let patient = Config { timeouts: false, ..sampled(threads, seed) };
        explore(patient, move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn waiters_that_give_up_while_it_is_held_strand_nobody() {
    on_each!(give_up_while_held);
    for waiters in [1, 2, 4] {
        explore(sampled(waiters + 1, 1), move || model::give_up_beside_a_barger::<Sleeper>(waiters));
    }
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;
type RecordedSpinner = RawFairMutex<Private<Adaptive, Recorder>>;

#[test]
fn who_came_first_is_served_first() {
    for threads in MANY {
        for timed in [false, true] {
            explore(sampled(threads, 1), move || model::in_order::<Recorded>(threads, timed));
            explore(sampled(threads, 2), move || model::in_order::<RecordedSpinner>(threads, timed));
        }
    }
}

/// A thread that tries meets a waiter that leaves a free mutex.
#[test]
fn a_thread_that_tries_is_in_the_order_too() {
    let few = Config { stale: 0, preemptions: Some(3), ..Config::exhaustive() };
    explore(few, || model::in_order::<Recorded>(3, true));
}
