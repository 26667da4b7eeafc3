//! The gate at which threads wait for a cell.

use crate::latch::{Latch, one_look_for_two_cells};
use ulocks_core::model::{Config, Grade, explore, finds_bug};
use ulocks_semarray::seeded as bug;
use ulocks_testkit::model;

type Sound = Latch<{ bug::NOTHING }>;

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the words.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

#[test]
fn at_most_one_is_inside() {
    explore(exact(3), || model::exclusion::<Sound>(2));
    explore(exact(1), || model::exclusion::<Sound>(3));
    explore(unordered(2), || model::exclusion::<Sound>(2));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<Sound>(2));
}

#[test]
fn nobody_parks_for_ever() {
    explore(exact(3), || model::no_lost_wake::<Sound>(2, 2));
    explore(exact(2), || model::no_lost_wake::<Sound>(3, 1));
    explore(unordered(2), || model::no_lost_wake::<Sound>(2, 2));
    explore(exact(2), || one_look_for_two_cells::<{ bug::NOTHING }>(2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(3), || model::last_unlocker_frees::<Sound>(2));
    explore(exact(1), || model::last_unlocker_frees::<Sound>(3));
}

#[test]
fn a_lost_wake_up_is_found() {
    fn lost<const BUG: u8>() {
        finds_bug(exact(2), || model::no_lost_wake::<Latch<BUG>>(2, 1));
    }
    lost::<{ bug::RELEASES_WITHOUT_FENCE }>();
    lost::<{ bug::PARKS_WITHOUT_FENCE }>();
    lost::<{ bug::LOOKS_BEFORE_ANNOUNCING }>();
    lost::<{ bug::WRONG_BITS }>();
    lost::<{ bug::NO_BUMP_AT_GATE }>();
    lost::<{ bug::RELAXED_COUNT_AT_GATE }>();
    lost::<{ bug::WITHDRAWS_EARLY }>();
}
