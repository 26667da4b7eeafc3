//! The groups in which sleepers sleep.

use crate::group_clients::{
    a_full_list_forgets_no_waiter, a_group_is_woken_by_one_call, a_seat_changes_hands,
    a_waiter_that_leaves_gives_its_seat_back, a_wakeup_for_another_is_passed_on,
    waiters_that_share_a_bit_are_all_woken,
};
use ulocks_core::model::{Config, Grade, explore};

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken sleeper sees it has from its status.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

#[test]
fn a_completed_waiter_wakes_up() {
    explore(exact(3), || a_group_is_woken_by_one_call(1));
    explore(exact(2), || a_group_is_woken_by_one_call(2));
    explore(exact(1), || a_group_is_woken_by_one_call(3));
    explore(unordered(3), || a_group_is_woken_by_one_call(1));
    explore(unordered(1), || a_group_is_woken_by_one_call(2));
    explore(Config { spurious: 2, ..exact(2) }, || a_group_is_woken_by_one_call(2));
    explore(exact(1), a_full_list_forgets_no_waiter);
    explore(exact(2), || waiters_that_share_a_bit_are_all_woken(2));
    explore(exact(2), a_seat_changes_hands);
    explore(unordered(1), a_seat_changes_hands);
    explore(exact(2), a_wakeup_for_another_is_passed_on);
    explore(unordered(1), a_wakeup_for_another_is_passed_on);
}

#[test]
fn a_seat_is_given_back() {
    let timed = |preemptions| Config { timeouts: 2, ..exact(preemptions) };
    explore(timed(2), || a_waiter_that_leaves_gives_its_seat_back(1, true, || {}));
    explore(timed(1), || a_waiter_that_leaves_gives_its_seat_back(2, true, || {}));
}
