//! The array.

use crate::arrays::{self, parcels};
use ulocks_core::model::{Config, explore};

/// How many executions of a model of this many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

#[test]
fn operations_add_up() {
    for threads in [2, 4, 8] {
        explore(sampled(threads, 1), move || arrays::additions_add_up(threads));
        explore(sampled(threads, 2), move || arrays::sets_and_singles_add_up(threads));
    }
    explore(sampled(2, 3), arrays::no_thread_sees_inside_a_set);
    explore(sampled(3, 4), arrays::a_set_that_can_proceed_passes_one_that_cannot);
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
fn a_set_is_visible_to_the_receiver_of_its_units() {
    for parcel in parcels() {
        explore(sampled(2, 1), move || arrays::a_set_publishes(&parcel));
    }
    for closes in [false, true] {
        explore(sampled(2, 2), move || arrays::a_look_shows_what_came_before(closes));
    }
}

#[test]
fn a_timeout_loses_nothing() {
    for patient in [0, 1, 3] {
        explore(sampled(2 + patient, 1), move || arrays::a_timeout_against_a_post(patient));
    }
    explore(sampled(2, 2), arrays::a_pairs_timeout_against_posts);
}

#[test]
fn a_pair_is_had_at_once() {
    explore(sampled(4, 1), || arrays::a_pair_from_two_posters(false));
    explore(sampled(5, 2), || arrays::a_pair_from_two_posters(true));
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 3), move || arrays::a_pair_excludes(threads));
    }
}

#[test]
fn the_oldest_that_can_proceed_does() {
    explore(sampled(3, 1), arrays::a_set_that_moves_keeps_its_age);
    explore(sampled(3, 2), arrays::the_older_of_two_candidates_proceeds);
}

#[test]
fn a_sleeper_is_where_it_stops() {
    explore(sampled(2, 1), || arrays::what_was_enough_is_taken_away(false));
    explore(sampled(2, 2), || arrays::what_was_enough_is_taken_away(true));
    explore(sampled(2, 3), arrays::a_sleeper_overflows);
    explore(sampled(2, 4), arrays::a_sleeper_that_is_not_to_wait);
}

#[test]
fn no_session_waits_for_a_waiting_session() {
    explore(sampled(3, 1), || arrays::crossed_pairs(false));
    explore(sampled(3, 2), || arrays::crossed_pairs(true));
    for posters in [2, 3, 5] {
        explore(sampled(posters, 4), move || arrays::crossed_posters(posters));
        explore(sampled(posters + 1, 3), move || arrays::posters_against_the_cascade(posters));
    }
}

#[test]
fn a_zero_is_seen_by_its_waiters() {
    explore(sampled(2, 1), arrays::zero_between_two_sets);
    explore(sampled(2, 3), arrays::a_pair_makes_a_zero);
    explore(sampled(3, 2), arrays::zero_and_growth);
}

#[test]
fn an_end_is_an_end() {
    explore(sampled(2, 1), arrays::an_end_is_an_end);
}

#[test]
fn sleepers_are_told_of_the_end() {
    for pair in [false, true] {
        explore(sampled(2, 1), move || arrays::the_end(pair, false));
        explore(sampled(3, 2), move || arrays::the_end(pair, true));
    }
}

#[test]
fn a_value_that_is_set_serves() {
    explore(sampled(3, 1), || arrays::a_value_is_set(false));
    explore(sampled(3, 2), || arrays::a_value_is_set(true));
}

#[test]
fn the_array_is_not_touched_after_it_served() {
    explore(sampled(2, 1), || arrays::the_served_frees(false));
    explore(sampled(2, 2), || arrays::the_served_frees(true));
}

#[test]
fn the_oldest_aged_set_is_not_robbed() {
    explore(sampled(2, 1), arrays::no_set_takes_from_the_oldest_aged_set);
    explore(sampled(3, 2), arrays::the_oldest_aged_set_leaves);
    explore(Config { seed: 3, ..Config::sampled(6_000) }, arrays::a_holder_that_wants_more_passes);
}
