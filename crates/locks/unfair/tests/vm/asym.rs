//! The asymmetric mutex. The heavy fence is the machine's own here: a fence on every thread,
//! wherever it is.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::MANY;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<RawAsymMutex<Private<NoSpin>>, 1>;
type OpenSpinner = Warm<RawAsymMutex<Private>, 1>;
type Sleeper = RawAsymMutex<Private<NoSpin>>;
type SharedSleeper = RawAsymMutex<Shared<NoSpin>>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<OpenSpinner>(1);
        $check::<Open>(2);
        $check::<Sleeper>(3);
        $check::<SharedSleeper>(4);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [OpenSpinner = 1, Open = 2, Sleeper = 3, SharedSleeper = 4],
    exhaustive: {
        exclusion: [OpenSpinner, Open, Sleeper, SharedSleeper],
        no_lost_wake: [OpenSpinner, Open, Sleeper, SharedSleeper],
        timeout_vs_unlock: [],
        last_unlocker_frees: [OpenSpinner, Open, Sleeper, SharedSleeper],
    },
    try_lock: [Open],
    interrupted: [Open = 1, Sleeper = 2],
    deaths: [OpenSpinner = 1, Open = 2, Sleeper = 3, SharedSleeper = 4],
}

#[test]
fn neighbours_do_not_lose_one_anothers_marks() {
    for threads in MANY {
        explore(sampled(threads, 1), move || neighbours::<Open>(threads - 1, 1, 2));
        explore(sampled(threads, 2), move || neighbours::<Open>(threads / 2, threads - threads / 2, 3));
    }
    // Of a waiter that comes while the gate is closing.
    explore(Config::sampled(50_000), || neighbours::<Open>(2, 2, 1));
}

fn condvar<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for waiters in [2, 8] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, seed), move || all_at_once::<L>(waiters, while_holding));
            explore(sampled(2 * waiters, seed), move || one_by_one::<L>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, seed), move || all_beside_a_barger::<L>(waiters));
        explore(sampled(2 * waiters, seed), move || one_gives_up::<L>(waiters));
    }
}

#[test]
fn who_waits_for_a_condition_gets_the_mutex() {
    on_each!(condvar);
}
