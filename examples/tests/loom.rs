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

#[test]
fn every_item_comes_out_once() {
    model::explore(Config::bounded(2), two_to_one);
    model::explore(Config::bounded(2), one_to_two);
}

#[test]
fn spurious_wake_ups_change_nothing() {
    model::explore(Config { spurious: 2, ..Config::bounded(1) }, two_to_one);
}

#[test]
fn items_come_out_in_the_order_they_went_in() {
    model::explore(Config::bounded(3), in_order);
}

#[test]
fn closing_ends_every_wait() {
    model::explore(Config::bounded(2), close_on_two);
}

#[test]
fn a_timed_pop_gets_the_item_or_leaves_it() {
    model::explore(Config { timeouts: 2, ..Config::bounded(2) }, timed_pop);
}

#[test]
fn jobs_that_need_the_same_things_do_not_deadlock() {
    model::explore(Config::bounded(1), crosswise);
}

#[test]
fn no_job_runs_in_a_pause() {
    model::explore(Config::bounded(2), job_and_pause);
}

#[test]
fn a_job_that_gives_up_has_taken_nothing() {
    model::explore(Config { timeouts: 1, ..Config::bounded(1) }, timed);
}
