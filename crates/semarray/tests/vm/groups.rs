//! The groups in which sleepers sleep.

use crate::sleepers::{
    a_berth_changes_hands, a_full_list_forgets_nobody, a_group_is_woken_by_one_call,
    who_is_woken_for_another_passes_it_on, who_leaves_gives_the_berth_back, who_shares_a_bit_is_woken_too,
};
use ulocks_core::model::signal::{self, Signal};
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
fn told_is_told() {
    explore(Config::exhaustive(), || a_group_is_woken_by_one_call::<SOUND>(1));
    for sleepers in [2, 4] {
        explore(sampled(sleepers + 1, 1), move || a_group_is_woken_by_one_call::<SOUND>(sleepers));
    }
    explore(sampled(4, 2), a_full_list_forgets_nobody::<SOUND>);
    for sleepers in [2, 3, 8] {
        explore(sampled(sleepers + 1, 3), move || who_shares_a_bit_is_woken_too::<SOUND>(sleepers));
    }
    explore(sampled(3, 4), a_berth_changes_hands::<SOUND>);
    explore(sampled(3, 5), who_is_woken_for_another_passes_it_on::<SOUND>);
}

#[test]
fn a_lost_wake_up_is_found() {
    const LOST: &str = "nobody can go on";
    found("NO_BUMP", LOST, || a_group_is_woken_by_one_call::<{ bug::NO_BUMP }>(1));
    found("LOOKS_BEFORE_COUNT", LOST, || a_group_is_woken_by_one_call::<{ bug::LOOKS_BEFORE_COUNT }>(1));
    found("RELAXED_COUNT", LOST, || a_group_is_woken_by_one_call::<{ bug::RELAXED_COUNT }>(1));
    found("DROPS_WHEN_FULL", LOST, a_full_list_forgets_nobody::<{ bug::DROPS_WHEN_FULL }>);
    found("WAKES_ONE_OF_MANY", LOST, || who_shares_a_bit_is_woken_too::<{ bug::WAKES_ONE_OF_MANY }>(2));
    found("FREES_FIRST", LOST, a_berth_changes_hands::<{ bug::FREES_FIRST }>);
    found("LEAVES_LATE", LOST, || a_group_is_woken_by_one_call::<{ bug::LEAVES_LATE }>(2));
    found("FORGETS_LEFT", LOST, || a_group_is_woken_by_one_call::<{ bug::FORGETS_LEFT }>(2));
    found("SLEEPS_AGAIN", LOST, who_is_woken_for_another_passes_it_on::<{ bug::SLEEPS_AGAIN }>);
}

#[test]
fn a_berth_comes_back() {
    for timed in [1, 2, 3] {
        explore(sampled(timed + 2, 1), move || who_leaves_gives_the_berth_back::<SOUND>(timed, true, || {}));
    }
    found("KEEPS_BITS", "given back", || a_group_is_woken_by_one_call::<{ bug::KEEPS_BITS }>(1));
}

#[test]
fn a_signal_ends_the_sleep_of_who_wants_to_know() {
    for leavers in [1, 2, 3] {
        explore(sampled(leavers + 2, 1), move || {
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, || {});
            who_leaves_gives_the_berth_back::<SOUND>(leavers, false, || {
                // The first thread is the patient one.
                (1..=leavers + 1).for_each(|thread| signal::send(thread, usr1));
            });
        });
    }
}
