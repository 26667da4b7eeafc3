//! The queue and the pool under loom: the code of `src/bounded_queue.rs` and `src/job_pool.rs` as
//! it stands. What is too large for loom is in `vm.rs`.
//!
//! `RUSTFLAGS="--cfg ulocks_loom" cargo test --profile model --features loom -p ulocks-examples
//! --test loom`
#![cfg(all(ulocks_loom, feature = "loom"))]

mod clients;

use clients::pool::job_and_pause;
use clients::queue::{close_on_two, in_order, one_to_two, timed_pop, two_to_one};
use loom::thread;
use ulocks_core::model::{self, Config};

#[test]
fn every_item_comes_out_once() {
    model::explore(Config::bounded(1), two_to_one);
    model::explore(Config::bounded(1), one_to_two);
}

#[test]
fn items_come_out_in_the_order_they_went_in() {
    model::explore(Config::bounded(2), in_order);
}

#[test]
fn closing_ends_every_wait() {
    model::explore(Config::bounded(1), close_on_two);
}

#[test]
fn a_timed_pop_gets_the_item_or_leaves_it() {
    model::explore(Config { timeouts: 1, ..Config::bounded(1) }, timed_pop);
}

#[test]
fn no_job_runs_in_a_pause() {
    model::explore(Config::bounded(3), job_and_pause);
}
