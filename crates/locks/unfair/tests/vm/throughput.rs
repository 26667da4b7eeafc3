//! The throughput mutex.

use crate::barging::sampled;
use crate::overtaking::reserver_is_next;
use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, Strict = 3],
    exhaustive: {
        exclusion: [Sleeper],
        no_lost_wake: [],
        timeout_vs_unlock: [],
        last_unlocker_frees: [],
    },
    try_lock: [Mutex],
    interrupted: [Sleeper = 1, Strict = 2],
    deaths: [Mutex = 1, Sleeper = 2, Strict = 3],
}

#[test]
fn nobody_but_the_reserver_takes_a_reserved_mutex() {
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 1), move || {
            _ = reserver_is_next::<Private<NoSpin>, HandOff>(vec![2; threads], || {})
        });
        explore(sampled(threads, 2), move || {
            _ = reserver_is_next::<Private, HandOff>(vec![2; threads], || {})
        });
        explore(sampled(threads, 3), move || {
            _ = reserver_is_next::<Private<NoSpin>, After>(vec![2; threads], || {})
        });
    }
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for waiters in [2, 4, 8] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Strict>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Strict>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Strict>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Strict>(waiters));
    }
}
