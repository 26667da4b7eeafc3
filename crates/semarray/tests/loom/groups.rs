//! The groups in which sleepers sleep.

use crate::sleepers::{
    a_berth_changes_hands, a_full_list_forgets_nobody, a_group_is_woken_by_one_call,
    who_is_woken_for_another_passes_it_on, who_leaves_gives_the_berth_back, who_shares_a_bit_is_woken_too,
};
use ulocks_core::model::{Config, Grade, explore, finds_bug};
use ulocks_semarray::seeded as bug;

const SOUND: u8 = bug::NOTHING;

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken sleeper sees it has from its status.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

#[test]
fn told_is_told() {
    explore(exact(3), || a_group_is_woken_by_one_call::<SOUND>(1));
    explore(exact(2), || a_group_is_woken_by_one_call::<SOUND>(2));
    explore(exact(1), || a_group_is_woken_by_one_call::<SOUND>(3));
    explore(unordered(3), || a_group_is_woken_by_one_call::<SOUND>(1));
    explore(unordered(1), || a_group_is_woken_by_one_call::<SOUND>(2));
    explore(Config { spurious: 2, ..exact(2) }, || a_group_is_woken_by_one_call::<SOUND>(2));
    explore(exact(1), a_full_list_forgets_nobody::<SOUND>);
    explore(exact(2), || who_shares_a_bit_is_woken_too::<SOUND>(2));
    explore(exact(2), a_berth_changes_hands::<SOUND>);
    explore(unordered(1), a_berth_changes_hands::<SOUND>);
    explore(exact(2), who_is_woken_for_another_passes_it_on::<SOUND>);
    explore(unordered(1), who_is_woken_for_another_passes_it_on::<SOUND>);
}

#[test]
fn a_lost_wake_up_is_found() {
    finds_bug(exact(2), || a_group_is_woken_by_one_call::<{ bug::NO_BUMP }>(1));
    finds_bug(exact(2), || a_group_is_woken_by_one_call::<{ bug::LOOKS_BEFORE_COUNT }>(1));
    finds_bug(exact(2), || a_group_is_woken_by_one_call::<{ bug::RELAXED_COUNT }>(1));
    finds_bug(exact(2), a_full_list_forgets_nobody::<{ bug::DROPS_WHEN_FULL }>);
    finds_bug(exact(2), || who_shares_a_bit_is_woken_too::<{ bug::WAKES_ONE_OF_MANY }>(2));
    finds_bug(exact(3), a_berth_changes_hands::<{ bug::FREES_FIRST }>);
    finds_bug(exact(2), || a_group_is_woken_by_one_call::<{ bug::LEAVES_LATE }>(2));
    finds_bug(exact(2), || a_group_is_woken_by_one_call::<{ bug::FORGETS_LEFT }>(2));
    finds_bug(exact(3), who_is_woken_for_another_passes_it_on::<{ bug::SLEEPS_AGAIN }>);
}

#[test]
fn a_berth_comes_back() {
    let timed = |preemptions| Config { timeouts: 2, ..exact(preemptions) };
    explore(timed(2), || who_leaves_gives_the_berth_back::<SOUND>(1, true, || {}));
    explore(timed(1), || who_leaves_gives_the_berth_back::<SOUND>(2, true, || {}));
    finds_bug(exact(1), || a_group_is_woken_by_one_call::<{ bug::KEEPS_BITS }>(1));
}
