//! Each model client passes on the plain lock. The mutants of the lock show that each can fail.
#![cfg(world = "vm")]

use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_testkit::model;
use ulocks_testkit::plain::Plain;

fn sampled() -> Config {
    Config::sampled(2_000)
}

#[test]
fn exclusion_holds() {
    explore(Config::exhaustive(), || model::exclusion::<Plain>(2));
    explore(sampled(), || model::exclusion::<Plain>(5));
}

#[test]
fn exclusion_holds_despite_deaths() {
    let deaths = Config { deaths: Deaths::Threads(1), survivors: Survivors::MayBlock, ..sampled() };
    let report = explore(deaths.clone(), || model::exclusion_despite_deaths::<Plain>(3));
    assert!(report.blocked > 0, "nobody died holding the lock");
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(Config::exhaustive(), || model::no_lost_wake::<Plain>(2, 1));
    explore(sampled(), || model::no_lost_wake::<Plain>(3, 2));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<Plain>(2));
    explore(sampled(), || model::timeout_vs_unlock::<Plain>(5));
}

#[test]
fn an_interrupted_waiter_strands_nobody() {
    explore(Config::exhaustive(), || model::interrupt_vs_unlock::<Plain>(2));
    explore(sampled(), || model::interrupt_vs_unlock::<Plain>(5));
}

#[test]
fn the_release_is_the_last_access() {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<Plain>(2));
    explore(sampled(), || model::last_unlocker_frees::<Plain>(4));
}

#[test]
fn try_lock_tells_the_truth() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Plain>(2));
    explore(sampled(), || model::try_lock_coherence::<Plain>(4));
}
