//! The asymmetric mutex.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Warm<Private>>();
        $check::<Open>();
        $check::<RawAsymMutex<Private<NoSpin>>>();
        $check::<RawAsymMutex<Shared<NoSpin>>>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// The first look at the deadline is `lock_until`'s own, the next ones decide how the waits end.
fn timed(preemptions: usize) -> Config {
    Config { timeouts: 3, ..Config::bounded(preemptions) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(2), || model::exclusion::<L>(3));
    explore(unordered(1), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<Open>(3));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::no_lost_wake::<L>(2, 2));
    explore(exact(2), || model::no_lost_wake::<L>(3, 1));
    explore(unordered(2), || model::no_lost_wake::<L>(2, 2));
    explore(unordered(1), || model::no_lost_wake::<L>(3, 1));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(2), || model::timeout_vs_unlock::<L>(2));
    explore(timed(1), || model::timeout_vs_unlock::<L>(3));
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
