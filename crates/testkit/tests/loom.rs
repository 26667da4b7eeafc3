//! Each model client passes on the plain lock. The mutants of the lock show that each can fail.
#![cfg(world = "loom")]

use ulocks_core::model::{Config, explore};
use ulocks_testkit::model;
use ulocks_testkit::plain::Plain;

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
fn nobody_sleeps_for_ever() {
    explore(exact(), || model::no_lost_wake::<Plain>(2, 2));
    explore(exact(), || model::no_lost_wake::<Plain>(3, 1));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(with_timeouts(), || model::timeout_vs_unlock::<Plain>(2));
    explore(with_timeouts(), || model::timeout_vs_unlock::<Plain>(3));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(), || model::last_unlocker_frees::<Plain>(2));
    explore(exact(), || model::last_unlocker_frees::<Plain>(3));
}

#[test]
fn try_lock_tells_the_truth() {
    explore(exact(), || model::try_lock_coherence::<Plain>(2));
    explore(exact(), || model::try_lock_coherence::<Plain>(3));
}
