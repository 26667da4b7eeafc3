//! The array, with waiters that are tasks.

use crate::array::sampled;
use crate::tasks_clients::{
    all_are_served, all_leave, holds_and_waits, what_is_dropped_is_given_back, who_gives_up_lets_others_pass,
};
use core::time::Duration;
use ulocks_core::model::explore;
use ulocks_semarray::Fairness;

#[test]
fn every_task_is_served() {
    for (singles, pairs, threads) in [(1, 0, 0), (0, 1, 0), (2, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 4)] {
        let config = sampled(1 + singles + pairs + threads, 1);
        explore(config, move || all_are_served(Fairness::Barging, singles, pairs, threads));
    }
}

#[test]
fn every_task_is_served_where_sets_become_aged() {
    for after in [Duration::ZERO, Duration::from_millis(1)] {
        for (singles, pairs, threads) in [(0, 2, 0), (1, 1, 1), (2, 2, 2)] {
            let (config, strict) = (sampled(1 + singles + pairs + threads, 1), Fairness::Strict { after });
            explore(config, move || all_are_served(strict, singles, pairs, threads));
        }
    }
}

#[test]
fn what_a_dropped_future_took_is_given_back() {
    for (singles, pairs, posts) in [(1, 0, 1), (0, 1, 1), (1, 1, 1), (2, 2, 2), (4, 4, 3)] {
        for polls in [1, 2] {
            explore(sampled(1 + singles + pairs, 1), move || {
                what_is_dropped_is_given_back(singles, pairs, posts, polls);
            });
        }
    }
    explore(sampled(3, 2), who_gives_up_lets_others_pass);
}

#[test]
fn a_close_ends_all_waits() {
    for tasks in [1, 2, 4] {
        explore(sampled(1 + tasks, 1), move || all_leave(tasks));
    }
}

/// The clock of a thread that waits lets it pass.
#[test]
fn a_holder_that_waits_is_let_pass() {
    explore(sampled(2, 1), holds_and_waits);
}
