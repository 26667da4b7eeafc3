//! The throughput mutex.

use crate::overtaking::reserver_is_next;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::yield_now;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

ulocks_testkit::loom_models! {
    locks: [Mutex, Sleeper, Strict],
    exclusion: [
        exact(2) => 2,
        exact(2) => 3,
        unordered(1) => 3,
        Config { spurious: 2, ..exact(2) } => 2,
    ],
    try_lock: Mutex,
    no_lost_wake: [
        exact(2) => (2, 2),
        exact(2) => (3, 1),
        unordered(1) => (3, 1),
        Config { spurious: 2, ..exact(1) } => (3, 1),
        timed(1, 2) => (3, 1),
    ],
    timeout_vs_unlock: [timed(2, 3) => 2, timed(2, 3) => 3],
    last_unlocker_frees: [exact(2) => 2, exact(2) => 3],
}

#[test]
fn nobody_but_the_reserver_takes_a_reserved_mutex() {
    explore(exact(2), || _ = reserver_is_next::<Private<NoSpin>, HandOff>(vec![2; 2], || {}));
    explore(exact(2), || _ = reserver_is_next::<Private, HandOff>(vec![2; 2], || {}));
    explore(Config { timeouts: 3, ..exact(2) }, || {
        _ = reserver_is_next::<Private<NoSpin>, After>(vec![2; 2], || {})
    });
    // A holder that yields lets the other reserve at no cost.
    explore(exact(3), || _ = reserver_is_next::<Private<NoSpin>, HandOff>(vec![3, 1], yield_now));
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for while_holding in [false, true] {
        explore(exact(1), move || all_at_once::<Strict>(2, while_holding));
        explore(exact(2), move || one_by_one::<Strict>(1, while_holding));
    }
    explore(exact(1), || all_beside_a_barger::<Strict>(2));
    explore(Config { timeouts: 2, ..exact(1) }, || one_gives_up::<Strict>(1));
}
