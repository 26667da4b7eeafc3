//! The groups in which sleepers sleep.

use crate::array::sampled;
use crate::group_clients::{
    a_full_list_forgets_no_waiter, a_group_is_woken_by_one_call, a_seat_changes_hands,
    a_waiter_that_leaves_gives_its_seat_back, a_wakeup_for_another_is_passed_on,
    waiters_that_share_a_bit_are_all_woken,
};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::{Config, explore};

#[test]
fn a_completed_waiter_wakes_up() {
    explore(Config::exhaustive(), || a_group_is_woken_by_one_call(1));
    for sleepers in [2, 4] {
        explore(sampled(sleepers + 1, 1), move || a_group_is_woken_by_one_call(sleepers));
    }
    explore(sampled(4, 2), a_full_list_forgets_no_waiter);
    for sleepers in [2, 3, 8] {
        explore(sampled(sleepers + 1, 3), move || waiters_that_share_a_bit_are_all_woken(sleepers));
    }
    explore(sampled(3, 4), a_seat_changes_hands);
    explore(sampled(3, 5), a_wakeup_for_another_is_passed_on);
}

#[test]
fn a_seat_is_given_back() {
    for timed in [1, 2, 3] {
        explore(sampled(timed + 2, 1), move || a_waiter_that_leaves_gives_its_seat_back(timed, true, || {}));
    }
}

#[test]
fn a_signal_ends_an_interruptible_sleep() {
    for leavers in [1, 2, 3] {
        explore(sampled(leavers + 2, 1), move || {
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, || {});
            a_waiter_that_leaves_gives_its_seat_back(leavers, false, || {
                // The first thread is the patient one.
                (1..=leavers + 1).for_each(|thread| signal::send(thread, usr1));
            });
        });
    }
}
