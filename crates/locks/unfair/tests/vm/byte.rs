//! The mutex in two bits of a byte.

use crate::barging::sampled;
use crate::bits::{bits_survive, replacements_succeed_one_another};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_gives_up};
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2],
    exhaustive: {
        exclusion: [Sleeper],
        no_lost_wake: [Sleeper],
        timeout_vs_unlock: [],
        last_unlocker_frees: [Sleeper],
    },
    try_lock: [Mutex],
    deaths: [Mutex = 1, Sleeper = 2],
}

#[test]
fn the_other_bits_are_the_users() {
    explore(Config::exhaustive(), || bits_survive(1));
    explore(sampled(4, 1), || bits_survive(2));
    explore(sampled(4, 2), || replacements_succeed_one_another(2));
}

#[test]
fn a_condition_variable_works_with_it() {
    for waiters in [2, 4] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Sleeper>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Sleeper>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Sleeper>(waiters));
    }
}
