//! The parking slots, where threads wait for a cell.

use crate::latch::{Latch, one_load_for_two_cells};
use ulocks_core::model::{Config, Grade, explore};
use ulocks_testkit::model;

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the words.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

#[test]
fn at_most_one_is_inside() {
    explore(exact(3), || model::exclusion::<Latch>(2));
    explore(exact(1), || model::exclusion::<Latch>(3));
    explore(unordered(2), || model::exclusion::<Latch>(2));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<Latch>(2));
}

#[test]
fn no_thread_parks_for_ever() {
    explore(exact(3), || model::no_lost_wake::<Latch>(2, 2));
    explore(exact(2), || model::no_lost_wake::<Latch>(3, 1));
    explore(unordered(2), || model::no_lost_wake::<Latch>(2, 2));
    explore(exact(2), || one_load_for_two_cells(2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(3), || model::last_unlocker_frees::<Latch>(2));
    explore(exact(1), || model::last_unlocker_frees::<Latch>(3));
}
