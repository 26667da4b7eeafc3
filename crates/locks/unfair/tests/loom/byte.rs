//! The mutex in two bits of a byte. Each visit to the modelled lot is several steps more than a
//! futex call, so the bounds are a little lower than for the mutex on a futex; the virtual machine
//! takes more threads.

use crate::bits::{bits_survive, replacements_succeed_one_another};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tickets::{all_at_once, one_gives_up};
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

ulocks_testkit::loom_models! {
    locks: [Mutex, Sleeper],
    exclusion: [exact(3) => 2, exact(3) => 3, unordered(2) => 3],
    try_lock: Mutex,
    no_lost_wake: [exact(3) => (2, 2), exact(3) => (3, 1), unordered(2) => (2, 2)],
    timeout_vs_unlock: [timed(3, 3) => 2, timed(2, 3) => 3],
    last_unlocker_frees: [exact(3) => 2, exact(3) => 3],
}

#[test]
fn the_other_bits_are_the_users() {
    explore(exact(3), || bits_survive(1));
    explore(exact(2), || bits_survive(2));
    explore(exact(2), || replacements_succeed_one_another(2));
}

#[test]
fn a_condition_variable_works_with_it() {
    for while_holding in [false, true] {
        explore(exact(1), move || all_at_once::<Sleeper>(2, while_holding));
    }
    explore(Config { timeouts: 2, ..exact(1) }, || one_gives_up::<Sleeper>(1));
}
