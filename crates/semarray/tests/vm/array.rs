//! The array.

use crate::arrays::{self, parcels};
use ulocks_core::model::{Config, Failure, explore, finds_bug_saying};
use ulocks_semarray::seeded as bug;

const SOUND: u8 = bug::NOTHING;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

/// What a seeded bug is called, by whom it is found, and what is said of it.
fn found(name: &str, says: &str, client: impl Fn() + 'static) {
    let Failure { execution, .. } = finds_bug_saying(says, Config::sampled(100_000), client);
    println!("{name}: found at execution {execution}");
}

#[test]
fn operations_add_up() {
    for threads in [2, 4, 8] {
        explore(sampled(threads, 1), move || arrays::additions_add_up::<SOUND>(threads));
        explore(sampled(threads, 2), move || arrays::sets_and_singles_add_up::<SOUND>(threads));
    }
    explore(sampled(2, 3), arrays::nobody_sees_inside_a_set::<SOUND>);
    explore(sampled(3, 4), arrays::who_can_proceed_passes_who_cannot::<SOUND>);
}

#[test]
fn whoever_waits_is_served() {
    for (posters, waiters) in [(1, 1), (1, 2), (2, 2), (2, 6)] {
        explore(sampled(posters + waiters, 1), move || arrays::posts_and_waits::<SOUND>(posters, waiters));
    }
}

#[test]
fn a_set_is_seen_by_who_has_what_it_gave() {
    for parcel in parcels() {
        explore(sampled(2, 1), move || arrays::a_set_publishes::<SOUND>(&parcel));
    }
}

#[test]
fn a_timeout_loses_nothing() {
    for patient in [0, 1, 3] {
        explore(sampled(2 + patient, 1), move || arrays::a_timeout_against_a_post::<SOUND>(patient));
    }
    explore(sampled(2, 2), arrays::a_pairs_timeout_against_posts::<SOUND>);
}

#[test]
fn a_pair_is_had_at_once() {
    explore(sampled(4, 1), || arrays::a_pair_from_two_posters::<SOUND>(false));
    explore(sampled(5, 2), || arrays::a_pair_from_two_posters::<SOUND>(true));
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 3), move || arrays::a_pair_excludes::<SOUND>(threads));
    }
}

#[test]
fn the_oldest_that_can_proceed_does() {
    explore(sampled(3, 1), arrays::who_moves_keeps_its_age::<SOUND>);
    explore(sampled(3, 2), arrays::the_older_of_two_candidates_proceeds::<SOUND>);
}

#[test]
fn a_sleeper_is_where_it_stops() {
    explore(sampled(2, 1), || arrays::what_was_enough_is_taken_away::<SOUND>(false));
    explore(sampled(2, 2), || arrays::what_was_enough_is_taken_away::<SOUND>(true));
    explore(sampled(2, 3), arrays::a_sleeper_overflows::<SOUND>);
    explore(sampled(2, 4), arrays::a_sleeper_that_is_not_to_wait::<SOUND>);
}

#[test]
fn nobody_waits_for_one_who_waits() {
    explore(sampled(3, 1), || arrays::crossed_pairs::<SOUND>(false));
    explore(sampled(3, 2), || arrays::crossed_pairs::<SOUND>(true));
    for posters in [2, 3, 5] {
        explore(sampled(posters, 4), move || arrays::crossed_posters::<SOUND>(posters));
        explore(sampled(posters + 1, 3), move || arrays::posters_against_the_cascade::<SOUND>(posters));
    }
}

#[test]
fn a_zero_is_seen_by_who_waits_for_it() {
    explore(sampled(2, 1), arrays::zero_between_two_sets::<SOUND>);
    explore(sampled(3, 2), arrays::zero_and_growth::<SOUND>);
}

#[test]
fn the_end_is_told() {
    for pair in [false, true] {
        explore(sampled(2, 1), move || arrays::the_end::<SOUND>(pair, false));
        explore(sampled(3, 2), move || arrays::the_end::<SOUND>(pair, true));
    }
}

#[test]
fn a_value_that_is_set_serves() {
    explore(sampled(3, 1), || arrays::a_value_is_set::<SOUND>(false));
    explore(sampled(3, 2), || arrays::a_value_is_set::<SOUND>(true));
}

#[test]
fn the_array_is_not_touched_after_it_served() {
    explore(sampled(2, 1), || arrays::the_served_frees::<SOUND>(false));
    explore(sampled(2, 2), || arrays::the_served_frees::<SOUND>(true));
}

#[test]
fn the_eldest_is_not_robbed() {
    explore(sampled(2, 1), arrays::nobody_takes_from_the_eldest::<SOUND>);
    explore(sampled(3, 2), arrays::the_eldest_leaves::<SOUND>);
    explore(Config { seed: 3, ..Config::sampled(6_000) }, arrays::who_has_and_wants_more_passes::<SOUND>);
}

/// What the machine says of a bug; clients say other things.
const STUCK: &str = "nobody can go on";
const ENDLESS: &str = "nothing ends";
const RACE: &str = "data race";

#[test]
fn each_bug_is_found() {
    found("IN_TWO", "", || arrays::additions_add_up::<{ bug::IN_TWO }>(2));
    found("IGNORES_LOCK", "", || arrays::sets_and_singles_add_up::<{ bug::IGNORES_LOCK }>(2));
    found("ADDS_QUIETLY", STUCK, || arrays::posts_and_waits::<{ bug::ADDS_QUIETLY }>(1, 1));
    found("FORGETS_ZERO", STUCK, arrays::zero_and_growth::<{ bug::FORGETS_ZERO }>);
    found("IGNORES_COMPLEX", "", || arrays::a_pair_from_two_posters::<{ bug::IGNORES_COMPLEX }>(false));
    found("WAITS_HOLDING", STUCK, || arrays::crossed_posters::<{ bug::WAITS_HOLDING }>(2));
    found("KEEPS_PART", "", || arrays::crossed_pairs::<{ bug::KEEPS_PART }>(true));
    found("HEAD_ONLY", STUCK, arrays::who_can_proceed_passes_who_cannot::<{ bug::HEAD_ONLY }>);
    found("RELAXED_PUBLISH", RACE, || arrays::a_set_publishes::<{ bug::RELAXED_PUBLISH }>(&parcels()[0]));
    found("RELAXED_TELL", RACE, || arrays::a_set_publishes::<{ bug::RELAXED_TELL }>(&parcels()[1]));
    found("TELLS_FIRST", "", || arrays::the_served_frees::<{ bug::TELLS_FIRST }>(true));
    found("GIVES_UP_BLINDLY", "", || arrays::a_timeout_against_a_post::<{ bug::GIVES_UP_BLINDLY }>(0));
    found("NEVER_MOVES", "", arrays::who_moves_keeps_its_age::<{ bug::NEVER_MOVES }>);
    found(
        "SERVES_ANYBODY",
        "younger",
        arrays::the_older_of_two_candidates_proceeds::<{ bug::SERVES_ANYBODY }>,
    );
    found("LOSES_AGE", "younger", arrays::who_moves_keeps_its_age::<{ bug::LOSES_AGE }>);
    found("NO_WATCHES", "", || arrays::what_was_enough_is_taken_away::<{ bug::NO_WATCHES }>(true));
    found("ONE_PASS", "", || arrays::a_pair_excludes::<{ bug::ONE_PASS }>(2));
    found("ENQUEUES_LATE", STUCK, || arrays::a_pair_from_two_posters::<{ bug::ENQUEUES_LATE }>(false));
    found("CLOSES_QUIETLY", STUCK, || arrays::the_end::<{ bug::CLOSES_QUIETLY }>(false, false));
    found("IGNORES_ELDER", "robbed", arrays::nobody_takes_from_the_eldest::<{ bug::IGNORES_ELDER }>);
    found("LEAVES_STOPPED", "has left", arrays::the_eldest_leaves::<{ bug::LEAVES_STOPPED }>);
    found("NEVER_LETS_PASS", ENDLESS, arrays::who_has_and_wants_more_passes::<{ bug::NEVER_LETS_PASS }>);
    found("READS_LOCKED", "published", arrays::nobody_sees_inside_a_set::<{ bug::READS_LOCKED }>);
}
