//! The queue and the pool under loom: the code of `src/bounded_queue.rs` and `src/job_pool.rs` as
//! it stands.
//!
//! `RUSTFLAGS="--cfg ulocks_loom" cargo test --profile model --features loom -p ulocks-examples
//! --test loom`
#![cfg(all(ulocks_loom, feature = "loom"))]

mod clients;

use clients::pool::{crosswise, job_and_pause, timed};
use clients::queue::{close_on_two, in_order, one_to_two, timed_pop, two_to_one};
use loom::thread;
use ulocks::model::{self, Config};
use ulocks_examples::{pool_seeded, seeded};

#[test]
fn every_item_comes_out_once() {
    model::explore(Config::bounded(2), two_to_one::<{ seeded::NOTHING }>);
    model::explore(Config::bounded(2), one_to_two::<{ seeded::NOTHING }>);
}

#[test]
fn spurious_wake_ups_change_nothing() {
    model::explore(Config { spurious: 2, ..Config::bounded(1) }, two_to_one::<{ seeded::NOTHING }>);
}

#[test]
fn items_come_out_in_the_order_they_went_in() {
    model::explore(Config::bounded(3), in_order);
}

#[test]
fn closing_ends_every_wait() {
    model::explore(Config::bounded(2), close_on_two::<{ seeded::NOTHING }>);
}

#[test]
fn a_timed_pop_gets_the_item_or_leaves_it() {
    model::explore(Config { timeouts: 2, ..Config::bounded(2) }, timed_pop);
}

#[test]
fn the_seeded_bugs_are_found() {
    let config = || Config::bounded(2);
    model::finds_bug_saying("deadlock", config(), two_to_one::<{ seeded::WRONG_SIDE }>);
    model::finds_bug_saying("deadlock", config(), close_on_two::<{ seeded::CLOSES_ONE }>);
    model::finds_bug_saying("the queue is open", config(), one_to_two::<{ seeded::LOOKS_ONCE }>);
    // A place becomes free and the other consumer is told, who sleeps again; the producer sleeps
    // on.
    model::finds_bug_saying("deadlock", config(), one_to_two::<{ seeded::ONE_CONDVAR }>);
}

#[test]
fn jobs_that_need_the_same_things_do_not_deadlock() {
    model::explore(Config::bounded(1), crosswise::<{ pool_seeded::NOTHING }>);
}

#[test]
fn no_job_runs_in_a_pause() {
    model::explore(Config::bounded(2), job_and_pause::<{ pool_seeded::NOTHING }>);
}

#[test]
fn a_job_that_gives_up_has_taken_nothing() {
    model::explore(Config { timeouts: 1, ..Config::bounded(1) }, timed);
}

#[test]
fn the_bugs_of_the_pool_are_found() {
    let config = || Config::bounded(2);
    model::finds_bug_saying("deadlock", Config::bounded(1), crosswise::<{ pool_seeded::ONE_BY_ONE }>);
    model::finds_bug_saying("in a pause", config(), job_and_pause::<{ pool_seeded::LOOKS_FIRST }>);
    model::finds_bug_saying("in a pause", config(), job_and_pause::<{ pool_seeded::PAUSES_LATE }>);
}
