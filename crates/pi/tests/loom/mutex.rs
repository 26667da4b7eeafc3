//! The mutex. Loom's kernel serves in the order of arrival, and its threads do not die; the virtual machine has the rest.

use crate::clients::{asks_again, opposite_orders};
use ulocks_core::model::{Config, Grade, explore, finds_bug, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_pi::RawPiMutex;
use ulocks_pi::model::{Mutex as Protocol, mutex as seeded};
use ulocks_testkit::model;

type Mutex = RawPiMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawPiMutex<Private<NoSpin>>;
type Bug<const BUG: u8> = Protocol<Private, BUG>;

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
    explore(exact(3), || _ = opposite_orders::<{ seeded::NOTHING }>());
    explore(exact(2), asks_again::<{ seeded::NOTHING }>);
    finds_bug_saying("deadlock", exact(2), || _ = opposite_orders::<{ seeded::SLEEPS_ON_ERRORS }>());
}

#[test]
fn exclusion_finds_each_missing_ordering() {
    finds_bug(exact(2), || model::exclusion::<Bug<{ seeded::RELAXED_L1 }>>(2));
    finds_bug(unordered(2), || model::exclusion::<Bug<{ seeded::RELAXED_L2 }>>(2));
    finds_bug(exact(2), || model::exclusion::<Bug<{ seeded::RELAXED_U1 }>>(2));
}

#[test]
fn exclusion_finds_who_takes_what_is_promised_to_another() {
    finds_bug(exact(2), || model::exclusion::<Bug<{ seeded::TAKES_MARKED }>>(3));
}

#[test]
fn no_lost_wake_finds_an_overwritten_mark() {
    finds_bug_saying("deadlock", exact(2), || model::no_lost_wake::<Bug<{ seeded::STORES_ZERO }>>(2, 1));
    finds_bug_saying("deadlock", exact(2), || model::no_lost_wake::<Bug<{ seeded::RELEASES_IN_TWO }>>(2, 1));
}

#[test]
fn timeout_vs_unlock_finds_a_waiter_that_gives_up_wrongly() {
    finds_bug(timed(), || model::timeout_vs_unlock::<Bug<{ seeded::TIMEOUT_HOLDS }>>(2));
    finds_bug(timed(), || model::timeout_vs_unlock::<Bug<{ seeded::GIVES_UP_THE_MARK }>>(3));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    finds_bug(exact(2), || model::last_unlocker_frees::<Bug<{ seeded::TOUCHES_AFTER }>>(2));
}
