//! The mutex in two bits of a byte. Each visit to the modelled lot is several steps more than a
//! futex call, so the bounds are a little lower than for the mutex on a futex; the virtual machine
//! takes more threads.

use crate::bits::{bits_survive, replacements_succeed_one_another};
use ulocks_core::Private;
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, one_gives_up};
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

/// Runs `check` on the mutex in its variants.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<Mutex>();
        $check::<Sleeper>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the lot and
/// from the byte.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// The first look at the deadline is `lock_until`'s own, the next ones decide how the waits end.
fn timed(preemptions: usize) -> Config {
    Config { timeouts: 3, ..Config::bounded(preemptions) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(3), || model::exclusion::<L>(3));
    explore(unordered(2), || model::exclusion::<L>(3));
}

#[test]
fn at_most_one_is_inside() {
    on_sound_locks!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<Mutex>(3));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::no_lost_wake::<L>(2, 2));
    explore(exact(3), || model::no_lost_wake::<L>(3, 1));
    explore(unordered(2), || model::no_lost_wake::<L>(2, 2));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_sound_locks!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(3), || model::timeout_vs_unlock::<L>(2));
    explore(timed(2), || model::timeout_vs_unlock::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::last_unlocker_frees::<L>(2));
    explore(exact(3), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
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
