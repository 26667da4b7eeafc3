//! The array.

use crate::arrays::{self, parcels};
use ulocks_core::model::{Config, Grade, explore};

/// A third thread makes a model a hundred times larger. So models of three are explored with one
/// preemption, or with none: threads then switch only where one waits. The virtual machine does
/// more of them.
fn exact(preemptions: usize) -> Config {
    Config { max_branches: 5_000, ..Config::bounded(preemptions) }
}

/// A wake-up orders nothing, as on the machine: what a woken sleeper sees it has from the words.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..exact(preemptions) }
}

fn timed(preemptions: usize) -> Config {
    Config { timeouts: 2, ..exact(preemptions) }
}

#[test]
fn operations_add_up() {
    explore(exact(3), || arrays::additions_add_up(2));
    explore(exact(1), || arrays::additions_add_up(3));
    explore(exact(2), || arrays::sets_and_singles_add_up(2));
    explore(exact(2), arrays::no_thread_sees_inside_a_set);
    explore(exact(0), arrays::a_set_that_can_proceed_passes_one_that_cannot);
}

#[test]
fn a_follower_is_parted() {
    explore(exact(2), || arrays::a_follower_is_parted(1, 2));
    explore(exact(2), || arrays::a_follower_is_parted(2, 2));
    explore(exact(2), arrays::a_look_at_a_follower);
}

#[test]
fn every_waiter_is_served() {
    explore(exact(2), || arrays::posts_and_waits(1, 1));
    explore(exact(1), || arrays::posts_and_waits(1, 2));
    explore(unordered(2), || arrays::posts_and_waits(1, 1));
    explore(Config { spurious: 2, ..exact(1) }, || arrays::posts_and_waits(1, 1));
}

#[test]
fn a_set_is_visible_to_the_receiver_of_its_units() {
    for (preemptions, parcel) in [2, 2, 2, 1, 2].into_iter().zip(parcels()) {
        let again = parcel.clone();
        explore(exact(preemptions), move || arrays::a_set_publishes(&parcel));
        explore(unordered(1), move || arrays::a_set_publishes(&again));
    }
    for closes in [false, true] {
        explore(exact(2), move || arrays::a_look_shows_what_came_before(closes));
    }
}

#[test]
fn a_timeout_loses_nothing() {
    explore(timed(2), || arrays::a_timeout_against_a_post(0));
    explore(timed(1), || arrays::a_timeout_against_a_post(1));
    explore(timed(1), arrays::a_pairs_timeout_against_posts);
}

#[test]
fn a_pair_is_had_at_once() {
    explore(exact(1), || arrays::a_pair_from_two_posters(false));
    explore(exact(1), || arrays::a_pair_excludes(2));
}

#[test]
fn the_oldest_that_can_proceed_does() {
    explore(exact(0), arrays::a_set_that_moves_keeps_its_age);
}

#[test]
fn a_sleeper_is_where_it_stops() {
    explore(exact(1), || arrays::what_was_enough_is_taken_away(false));
    explore(exact(1), || arrays::what_was_enough_is_taken_away(true));
    explore(exact(1), arrays::a_sleeper_overflows);
    explore(exact(1), arrays::a_sleeper_that_is_not_to_wait);
}

#[test]
fn no_session_waits_for_a_waiting_session() {
    explore(exact(1), || arrays::crossed_posters(2));
    explore(exact(0), || arrays::crossed_pairs(false));
    explore(exact(0), || arrays::posters_against_the_cascade(2));
}

#[test]
fn a_zero_is_seen_by_its_waiters() {
    explore(exact(2), arrays::zero_between_two_sets);
    explore(exact(1), arrays::a_pair_makes_a_zero);
    explore(exact(0), arrays::zero_and_growth);
}

#[test]
fn an_end_is_an_end() {
    explore(exact(2), arrays::an_end_is_an_end);
}

#[test]
fn sleepers_are_told_of_the_end() {
    for pair in [false, true] {
        explore(exact(2), move || arrays::the_end(pair, false));
        explore(exact(1), move || arrays::the_end(pair, true));
    }
}

#[test]
fn a_value_that_is_set_serves() {
    explore(exact(0), || arrays::a_value_is_set(true));
}

#[test]
fn the_array_is_not_touched_after_it_served() {
    explore(exact(2), || arrays::the_served_frees(false));
    explore(exact(1), || arrays::the_served_frees(true));
}

#[test]
fn the_oldest_aged_set_is_not_robbed() {
    explore(exact(1), arrays::no_set_takes_from_the_oldest_aged_set);
    // Loom has no clock, so it does not see the oldest aged set let others pass. The virtual
    // machine does.
}
