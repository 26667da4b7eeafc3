//! The array.

use crate::arrays;
use ulocks_core::model::{Config, explore};

/// How many executions of a model of this many threads: about as many steps for each number.
pub fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

#[test]
fn operations_add_up() {
    for threads in [2, 4, 8] {
        explore(sampled(threads, 1), move || arrays::additions_add_up(threads));
        explore(sampled(threads, 2), move || arrays::sets_and_singles_add_up(threads));
    }
    explore(sampled(2, 3), arrays::no_thread_sees_inside_a_set);
}

#[test]
fn a_follower_is_parted() {
    for (sets, threads) in [(1, 2), (2, 2), (2, 3), (0, 5), (1, 5)] {
        explore(sampled(threads, 5), move || arrays::a_follower_is_parted(sets, threads));
    }
    explore(sampled(2, 6), arrays::a_look_at_a_follower);
}

#[test]
fn a_leader_does_not_follow() {
    for threads in [2, 3] {
        explore(sampled(threads, 1), move || arrays::a_leader_does_not_follow(threads));
    }
}

#[test]
fn every_waiter_is_served() {
    for (posters, waiters) in [(1, 1), (1, 2), (2, 2), (2, 6)] {
        explore(sampled(posters + waiters, 1), move || arrays::posts_and_waits(posters, waiters));
    }
}

#[test]
fn a_timeout_loses_nothing() {
    for (pair, patient) in [(false, 0), (false, 1), (false, 3), (true, 0), (true, 1)] {
        explore(sampled(2 + patient, 1), move || arrays::a_timeout_against_posts(pair, patient));
    }
}

#[test]
fn the_array_is_not_touched_after_it_served() {
    for pair in [false, true] {
        explore(sampled(2, 1), move || arrays::the_served_frees(pair));
    }
}
