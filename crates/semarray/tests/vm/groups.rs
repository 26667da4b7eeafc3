//! The groups in which sleepers sleep.

use crate::sleepers::{
    a_berth_changes_hands, a_full_list_forgets_nobody, a_group_is_woken_by_one_call,
    who_is_woken_for_another_passes_it_on, who_leaves_gives_the_berth_back, who_shares_a_bit_is_woken_too,
};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::{Config, explore};

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

#[test]
fn told_is_told() {
    explore(Config::exhaustive(), || a_group_is_woken_by_one_call(1));
    for sleepers in [2, 4] {
        explore(sampled(sleepers + 1, 1), move || a_group_is_woken_by_one_call(sleepers));
    }
    explore(sampled(4, 2), a_full_list_forgets_nobody);
    for sleepers in [2, 3, 8] {
        explore(sampled(sleepers + 1, 3), move || who_shares_a_bit_is_woken_too(sleepers));
    }
    explore(sampled(3, 4), a_berth_changes_hands);
    explore(sampled(3, 5), who_is_woken_for_another_passes_it_on);
}

#[test]
fn a_berth_comes_back() {
    for timed in [1, 2, 3] {
        explore(sampled(timed + 2, 1), move || who_leaves_gives_the_berth_back(timed, true, || {}));
    }
}

#[test]
fn a_signal_ends_the_sleep_of_who_wants_to_know() {
    for leavers in [1, 2, 3] {
        explore(sampled(leavers + 2, 1), move || {
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, || {});
            who_leaves_gives_the_berth_back(leavers, false, || {
                // The first thread is the patient one.
                (1..=leavers + 1).for_each(|thread| signal::send(thread, usr1));
            });
        });
    }
}
