//! A few small models in loom's world: that the lock works there, for models of protocols that are
//! built on it. What the planted bugs break, and all larger models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;

type Sleeper = RawCalock<Private<NoSpin>>;

/// So many looks at a deadline are chosen freely: the first of a candidate is at its bound, before
/// it naps. The later ones find that it has passed, so that each nap ends.
fn timed(preemptions: usize, timeouts: u32) -> Config {
    Config { timeouts, rest_expire: true, ..Config::bounded(preemptions) }
}

#[test]
fn at_most_one_is_inside() {
    explore(timed(2, 1), || model::exclusion::<Sleeper>(2));
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(timed(2, 1), || model::no_lost_wake::<Sleeper>(2, 2));
    explore(timed(1, 1), || model::no_lost_wake::<Sleeper>(3, 1));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(timed(2, 1), || model::timeout_vs_unlock::<Sleeper>(2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(timed(2, 1), || model::last_unlocker_frees::<Sleeper>(2));
}
