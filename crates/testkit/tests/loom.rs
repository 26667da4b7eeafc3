//! Each model client passes on the sound lock and fails on the bug it is there for.
#![cfg(all(ulocks_loom, feature = "loom"))]

use ulocks_core::futex::Private;
use ulocks_core::model::{Config, explore, finds_bug, finds_bug_saying};
use ulocks_testkit::broken::{self, Plain, ThreeState};
use ulocks_testkit::model;

type Broken<const BUG: u8> = ThreeState<Private, BUG>;

fn exact() -> Config {
    Config::default()
}

fn with_timeouts() -> Config {
    Config { timeouts: 2, ..Config::default() }
}

#[test]
fn exclusion_holds() {
    explore(exact(), || model::exclusion::<Plain>(2));
    explore(exact(), || model::exclusion::<Plain>(3));
}

#[test]
fn exclusion_finds_a_lost_update() {
    finds_bug_saying("Concurrent", exact(), || model::exclusion::<Broken<{ broken::LOAD_THEN_STORE }>>(2));
}

#[test]
fn exclusion_finds_a_release_that_publishes_nothing() {
    finds_bug_saying("Concurrent", exact(), || model::exclusion::<Broken<{ broken::RELAXED_UNLOCK }>>(2));
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(exact(), || model::no_lost_wake::<Plain>(2, 2));
    explore(exact(), || model::no_lost_wake::<Plain>(3, 1));
}

#[test]
fn no_lost_wake_finds_a_release_that_wakes_nobody() {
    finds_bug_saying("deadlock", exact(), || model::no_lost_wake::<Broken<{ broken::NO_WAKE }>>(2, 1));
}

#[test]
fn no_lost_wake_finds_a_waiter_that_forgets_the_others() {
    // Two threads cannot show it: the chain of wake-ups needs a second sleeper.
    explore(exact(), || model::no_lost_wake::<Broken<{ broken::FORGETS_SLEEPERS }>>(2, 1));
    finds_bug_saying("deadlock", exact(), || {
        model::no_lost_wake::<Broken<{ broken::FORGETS_SLEEPERS }>>(3, 1);
    });
}

#[test]
fn a_timeout_strands_nobody() {
    explore(with_timeouts(), || model::timeout_vs_unlock::<Plain>(2));
    explore(with_timeouts(), || model::timeout_vs_unlock::<Plain>(3));
}

#[test]
fn timeout_vs_unlock_finds_a_timeout_that_loses_a_wake_up() {
    finds_bug_saying("deadlock", with_timeouts(), || {
        model::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_CONTENDED }>>(3);
    });
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(), || model::last_unlocker_frees::<Plain>(2));
    explore(exact(), || model::last_unlocker_frees::<Plain>(3));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    finds_bug_saying("index out of bounds", exact(), || {
        model::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_RELEASE }>>(2);
    });
}

#[test]
fn try_lock_tells_the_truth() {
    explore(exact(), || model::try_lock_coherence::<Plain>(2));
    explore(exact(), || model::try_lock_coherence::<Plain>(3));
}

#[test]
fn try_lock_coherence_finds_a_try_lock_that_passes_a_holder() {
    finds_bug(exact(), || model::try_lock_coherence::<Broken<{ broken::LOAD_THEN_STORE }>>(2));
}
