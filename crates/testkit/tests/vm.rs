//! Each model client passes on the sound lock and fails on the bug it is there for.
#![cfg(all(ulocks_vm, feature = "vm"))]

use ulocks_core::futex::Private;
use ulocks_core::model::{Config, Deaths, Survivors, explore, finds_bug, finds_bug_saying};
use ulocks_testkit::broken::{self, Plain, ThreeState};
use ulocks_testkit::model;

type Broken<const BUG: u8> = ThreeState<Private, BUG>;

fn sampled() -> Config {
    Config::sampled(2_000)
}

#[test]
fn exclusion_holds() {
    explore(Config::exhaustive(), || model::exclusion::<Plain>(2));
    explore(sampled(), || model::exclusion::<Plain>(5));
}

#[test]
fn exclusion_finds_a_lost_update() {
    finds_bug_saying("data race", sampled(), || model::exclusion::<Broken<{ broken::LOAD_THEN_STORE }>>(2));
}

#[test]
fn exclusion_finds_a_release_that_publishes_nothing() {
    finds_bug_saying("data race", sampled(), || model::exclusion::<Broken<{ broken::RELAXED_UNLOCK }>>(2));
}

#[test]
fn exclusion_holds_despite_deaths() {
    let deaths = Config { deaths: Deaths::Threads(1), survivors: Survivors::MayBlock, ..sampled() };
    let report = explore(deaths.clone(), || model::exclusion_despite_deaths::<Plain>(3));
    assert!(report.blocked > 0, "nobody died holding the lock");
    finds_bug_saying("data race", deaths, || {
        model::exclusion_despite_deaths::<Broken<{ broken::LOAD_THEN_STORE }>>(3);
    });
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(Config::exhaustive(), || model::no_lost_wake::<Plain>(2, 1));
    explore(sampled(), || model::no_lost_wake::<Plain>(3, 2));
}

#[test]
fn no_lost_wake_finds_a_release_that_wakes_nobody() {
    finds_bug_saying("lost wake-up", sampled(), || model::no_lost_wake::<Broken<{ broken::NO_WAKE }>>(2, 1));
}

#[test]
fn no_lost_wake_finds_a_waiter_that_forgets_the_others() {
    // Two threads cannot show it: the chain of wake-ups needs a second sleeper.
    explore(Config::exhaustive(), || model::no_lost_wake::<Broken<{ broken::FORGETS_SLEEPERS }>>(2, 1));
    finds_bug_saying("lost wake-up", sampled(), || {
        model::no_lost_wake::<Broken<{ broken::FORGETS_SLEEPERS }>>(3, 1);
    });
}

#[test]
fn a_timeout_strands_nobody() {
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<Plain>(2));
    explore(sampled(), || model::timeout_vs_unlock::<Plain>(5));
}

#[test]
fn timeout_vs_unlock_finds_a_timeout_that_loses_a_wake_up() {
    finds_bug_saying("lost wake-up", Config::sampled(10_000), || {
        model::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_CONTENDED }>>(3);
    });
}

#[test]
fn the_release_is_the_last_access() {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<Plain>(2));
    explore(sampled(), || model::last_unlocker_frees::<Plain>(4));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    finds_bug_saying("the atomic", sampled(), || {
        model::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_RELEASE }>>(2);
    });
}

#[test]
fn try_lock_tells_the_truth() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Plain>(2));
    explore(sampled(), || model::try_lock_coherence::<Plain>(4));
}

#[test]
fn try_lock_coherence_finds_a_try_lock_that_passes_a_holder() {
    finds_bug(sampled(), || model::try_lock_coherence::<Broken<{ broken::LOAD_THEN_STORE }>>(2));
}
