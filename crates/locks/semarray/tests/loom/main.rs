//! Models of the array, and of the static memory in which its threads wait. The virtual machine
//! has many more.
#![cfg(all(ulocks_loom, feature = "loom"))]
#![allow(dead_code, reason = "the clients of the virtual machine are in the same files")]

#[path = "../common/arrays.rs"]
mod arrays;
#[path = "../common/group_clients.rs"]
mod group_clients;
#[path = "../common/latch.rs"]
mod latch;

use ulocks_core::model::{Config, Grade, explore};
use ulocks_testkit::model;

/// A third thread makes a model a hundred times larger. So models of three are explored with one
/// preemption, or with none: threads then switch only where one waits.
fn exact(preemptions: usize) -> Config {
    Config { max_branches: 5_000, ..Config::bounded(preemptions) }
}

/// A wake-up orders nothing, as on the machine: what a woken sleeper sees it has from the words.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..exact(preemptions) }
}

#[test]
fn operations_add_up() {
    explore(exact(3), || arrays::additions_add_up(2));
    explore(exact(2), || arrays::sets_and_singles_add_up(2));
    explore(exact(2), || arrays::a_follower_is_parted(1, 2));
}

#[test]
fn every_waiter_is_served() {
    explore(exact(1), || arrays::posts_and_waits(1, 2));
    explore(unordered(2), || arrays::posts_and_waits(1, 1));
    explore(unordered(3), || group_clients::a_group_is_woken_by_one_call(1));
    explore(exact(3), || model::no_lost_wake::<latch::Latch>(2, 2));
}

#[test]
fn a_timeout_loses_nothing() {
    let timed = |preemptions| Config { timeouts: 2, ..exact(preemptions) };
    explore(timed(2), || arrays::a_timeout_against_posts(false, 0));
    explore(timed(1), || arrays::a_timeout_against_posts(true, 0));
}

#[test]
fn the_array_is_not_touched_after_it_served() {
    explore(exact(2), || arrays::the_served_frees(false));
    explore(exact(1), || arrays::the_served_frees(true));
}
