//! The asymmetric mutex.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<RawAsymMutex<Private<NoSpin>>, 1>;

ulocks_testkit::loom_models! {
    locks: [Warm<RawAsymMutex<Private>, 1>, Open, RawAsymMutex<Private<NoSpin>>, RawAsymMutex<Shared<NoSpin>>],
    exclusion: [
        exact(2) => 3,
        unordered(1) => 3,
        Config { spurious: 2, ..exact(2) } => 2,
    ],
    try_lock: Open,
    no_lost_wake: [
        exact(2) => (2, 2),
        exact(2) => (3, 1),
        unordered(1) => (3, 1),
    ],
    timeout_vs_unlock: [timed(2, 3) => 2],
    last_unlocker_frees: [exact(2) => 3],
}

#[test]
fn neighbours_do_not_lose_one_anothers_marks() {
    explore(exact(3), || neighbours::<Open>(2, 1, 1));
    explore(exact(2), || neighbours::<RawAsymMutex<Private<NoSpin>>>(2, 1, 1));
}
