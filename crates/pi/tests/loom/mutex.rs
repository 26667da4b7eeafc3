//! The mutex. Loom's kernel serves in the order of arrival, and its threads do not die; the virtual
//! machine has the rest.

use crate::clients::{asks_again, opposite_orders};
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_pi::RawPiMutex;
use ulocks_testkit::model;

type Mutex = RawPiMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawPiMutex<Private<NoSpin>>;

macro_rules! on_each {
    ($check:ident) => {
        $check::<Mutex>();
        $check::<Sleeper>();
        $check::<RawPiMutex<Shared>>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// The end of a call orders nothing: what a new owner sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// The first look at the deadline is the mutex's own, the next one decides how the wait ends.
fn timed() -> Config {
    Config { timeouts: 2, ..Config::bounded(2) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(2), || model::exclusion::<L>(3));
    explore(unordered(1), || model::exclusion::<L>(3));
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<Mutex>(3));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::no_lost_wake::<L>(2, 2));
    explore(exact(2), || model::no_lost_wake::<L>(3, 1));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(), || model::timeout_vs_unlock::<L>(2));
    explore(timed(), || model::timeout_vs_unlock::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::last_unlocker_frees::<L>(2));
    explore(exact(2), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
}

#[test]
fn a_circle_is_told_to_one_of_those_in_it() {
    explore(exact(3), || _ = opposite_orders());
    explore(exact(2), asks_again);
}
