//! The gate at which threads wait for a cell.

use crate::latch::{Latch, one_look_for_two_cells};
use ulocks_core::model::{Config, Failure, explore, finds_bug_saying};
use ulocks_semarray::seeded as bug;
use ulocks_testkit::model;

type Sound = Latch<{ bug::NOTHING }>;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

const MANY: [usize; 4] = [3, 4, 8, 16];

#[test]
fn at_most_one_is_inside() {
    explore(Config::exhaustive(), || model::exclusion::<Sound>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::exclusion::<Sound>(threads));
    }
}

#[test]
fn nobody_parks_for_ever() {
    explore(Config::exhaustive(), || model::no_lost_wake::<Sound>(2, 1));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::no_lost_wake::<Sound>(threads, 2));
        explore(sampled(threads, 2), move || one_look_for_two_cells::<{ bug::NOTHING }>(threads - 1));
    }
}

#[test]
fn the_release_is_the_last_access() {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<Sound>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::last_unlocker_frees::<Sound>(threads));
    }
}

#[test]
fn a_lost_wake_up_is_found() {
    fn lost<const BUG: u8>(name: &str) {
        let config = Config::sampled(100_000);
        let Failure { execution, .. } =
            finds_bug_saying("nobody can go on", config, || model::no_lost_wake::<Latch<BUG>>(2, 1));
        println!("{name}: found at execution {execution}");
    }
    lost::<{ bug::RELEASES_WITHOUT_FENCE }>("RELEASES_WITHOUT_FENCE");
    lost::<{ bug::PARKS_WITHOUT_FENCE }>("PARKS_WITHOUT_FENCE");
    lost::<{ bug::LOOKS_BEFORE_ANNOUNCING }>("LOOKS_BEFORE_ANNOUNCING");
    lost::<{ bug::WRONG_BITS }>("WRONG_BITS");
    lost::<{ bug::NO_BUMP_AT_GATE }>("NO_BUMP_AT_GATE");
    lost::<{ bug::RELAXED_COUNT_AT_GATE }>("RELAXED_COUNT_AT_GATE");
    lost::<{ bug::WITHDRAWS_EARLY }>("WITHDRAWS_EARLY");
}
