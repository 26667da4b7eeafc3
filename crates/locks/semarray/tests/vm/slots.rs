//! The parking slots, where threads wait for a cell.

use crate::array::sampled;
use crate::latch::{Latch, one_load_for_two_cells};
use ulocks_core::model::{Config, explore};
use ulocks_testkit::model;

const MANY: [usize; 4] = [3, 4, 8, 16];

#[test]
fn at_most_one_is_inside() {
    explore(Config::exhaustive(), || model::exclusion::<Latch>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::exclusion::<Latch>(threads));
    }
}

#[test]
fn no_thread_parks_for_ever() {
    explore(Config::exhaustive(), || model::no_lost_wake::<Latch>(2, 1));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::no_lost_wake::<Latch>(threads, 2));
        explore(sampled(threads, 2), move || one_load_for_two_cells(threads - 1));
    }
}

#[test]
fn the_release_is_the_last_access() {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<Latch>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::last_unlocker_frees::<Latch>(threads));
    }
}
