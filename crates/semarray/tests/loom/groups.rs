//! The groups in which sleepers sleep.

use crate::sleepers::{
    a_berth_changes_hands, a_full_list_forgets_nobody, a_group_is_woken_by_one_call,
    who_is_woken_for_another_passes_it_on, who_leaves_gives_the_berth_back, who_shares_a_bit_is_woken_too,
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
fn told_is_told() {
    explore(exact(3), || a_group_is_woken_by_one_call(1));
    explore(exact(2), || a_group_is_woken_by_one_call(2));
    explore(exact(1), || a_group_is_woken_by_one_call(3));
    explore(unordered(3), || a_group_is_woken_by_one_call(1));
    explore(unordered(1), || a_group_is_woken_by_one_call(2));
    explore(Config { spurious: 2, ..exact(2) }, || a_group_is_woken_by_one_call(2));
    explore(exact(1), a_full_list_forgets_nobody);
    explore(exact(2), || who_shares_a_bit_is_woken_too(2));
    explore(exact(2), a_berth_changes_hands);
    explore(unordered(1), a_berth_changes_hands);
    explore(exact(2), who_is_woken_for_another_passes_it_on);
    explore(unordered(1), who_is_woken_for_another_passes_it_on);
}

#[test]
fn a_berth_comes_back() {
    let timed = |preemptions| Config { timeouts: 2, ..exact(preemptions) };
    explore(timed(2), || who_leaves_gives_the_berth_back(1, true, || {}));
    explore(timed(1), || who_leaves_gives_the_berth_back(2, true, || {}));
}
