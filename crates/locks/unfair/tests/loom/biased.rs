//! The biased mutex.

use crate::inside::stay;
use crate::warm::Warm;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tickets::{all_at_once, one_by_one, one_gives_up};
use ulocks_unfair::RawBiasedMutex;

/// Owned by the thread that makes it, which takes part in the models.
type Owned = Warm<RawBiasedMutex<Private<NoSpin>>, 2>;

ulocks_testkit::loom_models! {
    locks: [Owned, Warm<RawBiasedMutex<Private>, 2>, RawBiasedMutex<Private<NoSpin>>],
    exclusion: [
        exact(3) => 2,
        exact(1) => 3,
    ],
    try_lock: RawBiasedMutex<Private<NoSpin>>,
    no_lost_wake: [
        exact(2) => (2, 2),
        unordered(1) => (3, 1),
    ],
    timeout_vs_unlock: [timed(2, 3) => 2, timed(1, 2) => 3],
    last_unlocker_frees: [exact(3) => 2, exact(1) => 3],
}

#[test]
fn an_owner_that_stays_inside_is_alone() {
    explore(exact(2), || stay::<Owned>(2, 2));
    explore(exact(1), || stay::<Owned>(3, 1));
}

fn condvar<L: RawMutex + Send + Sync + 'static>() {
    for while_holding in [false, true] {
        explore(exact(1), move || all_at_once::<L>(2, while_holding));
        explore(exact(1), move || one_by_one::<L>(1, while_holding));
    }
    explore(Config { timeouts: 2, ..exact(1) }, || one_gives_up::<L>(1));
}

#[test]
fn who_waits_for_a_condition_gets_the_mutex() {
    condvar::<Owned>();
}
