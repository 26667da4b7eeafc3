//! The asymmetric mutex.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<RawAsymMutex<Private<NoSpin>>, 1>;

ulocks_testkit::loom_models! {
    locks: [Warm<RawAsymMutex<Private>, 1>, Open, RawAsymMutex<Private<NoSpin>>, RawAsymMutex<Shared<NoSpin>>],
    exclusion: [
        exact(3) => 2,
        exact(2) => 3,
        unordered(1) => 3,
        Config { spurious: 2, ..exact(2) } => 2,
    ],
    try_lock: Open,
    no_lost_wake: [
        exact(3) => (2, 2),
        exact(2) => (3, 1),
        unordered(2) => (2, 2),
        unordered(1) => (3, 1),
    ],
    timeout_vs_unlock: [timed(2, 3) => 2, timed(1, 3) => 3],
    last_unlocker_frees: [exact(3) => 2, exact(2) => 3],
}

fn condvar<L: RawMutex + Send + Sync + 'static>() {
    for while_holding in [false, true] {
        explore(exact(2), move || all_at_once::<L>(2, while_holding));
        explore(exact(2), move || one_by_one::<L>(1, while_holding));
    }
    explore(exact(1), || all_beside_a_barger::<L>(2));
    explore(Config { timeouts: 2, ..exact(1) }, || one_gives_up::<L>(1));
}

#[test]
fn who_waits_for_a_condition_gets_the_mutex() {
    condvar::<Open>();
    condvar::<RawAsymMutex<Private<NoSpin>>>();
}

#[test]
fn neighbours_do_not_lose_one_anothers_marks() {
    explore(exact(3), || neighbours::<Open>(2, 1, 1));
    explore(exact(1), || neighbours::<Open>(2, 2, 1));
    explore(exact(2), || neighbours::<RawAsymMutex<Private<NoSpin>>>(2, 1, 1));
}
