//! The throughput mutex.

use crate::overtaking::reserver_is_next;
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::slice::Extended;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::yield_now;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

/// Runs `check` on the mutex in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Mutex>();
        $check::<Sleeper>();
        $check::<Strict>();
        $check::<RawThroughputMutex<Shared>>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

fn timed(preemptions: usize) -> Config {
    Config { timeouts: 3, ..Config::bounded(preemptions) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::exclusion::<L>(2));
    explore(exact(2), || model::exclusion::<L>(3));
    explore(unordered(1), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<Mutex>(3));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::no_lost_wake::<L>(2, 2));
    explore(exact(2), || model::no_lost_wake::<L>(3, 1));
    explore(unordered(1), || model::no_lost_wake::<L>(3, 1));
    explore(Config { spurious: 2, ..exact(1) }, || model::no_lost_wake::<L>(3, 1));
    explore(Config { timeouts: 2, ..exact(1) }, || model::no_lost_wake::<L>(3, 1));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(2), || model::timeout_vs_unlock::<L>(2));
    explore(timed(2), || model::timeout_vs_unlock::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::last_unlocker_frees::<L>(2));
    explore(exact(2), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
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

/// What asks for time slices adds nothing that a model sees, and loses nothing on the way.
#[test]
fn around_it_everything_is_as_within() {
    explore(exact(2), || model::exclusion::<Extended<Sleeper>>(2));
    explore(exact(2), || model::no_lost_wake::<Extended<Sleeper>>(3, 1));
    explore(timed(2), || model::timeout_vs_unlock::<Extended<Sleeper>>(2));
    explore(exact(2), || model::last_unlocker_frees::<Extended<Sleeper>>(2));
    explore(exact(1), || all_at_once::<Extended<Strict>>(2, true));
}
