//! A few models of the condition variable's protocol under loom. The bugs of `mutants/condvar.toml`
//! are found by the virtual machine.
//!
//! What these models cannot see: a wake-up that goes to a younger sleeper of higher priority (the
//! modelled kernel is first in, first out), and the orderings (advance)/(look), because a
//! read-modify-write under loom always finds the newest counts.
#![cfg(world = "loom")]

#[allow(dead_code, reason = "the virtual machine runs the larger ones")]
mod condvar_clients;

use condvar_clients::*;
use ulocks_core::model::{Config, Grade, explore};

fn exact() -> Config {
    Config::default()
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the words and
/// from the mutex.
///
/// One preemption where several sleep: loom may let two that poll run in turn for ever, and takes
/// that for a failure.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// Wake-ups as in the kernel, and wake-ups that order nothing.
fn each_way(model: fn()) {
    explore(exact(), model);
    explore(unordered(1), model);
}

#[test]
fn a_notification_is_not_missed() {
    each_way(one_waiter::<Sleeps>);
    each_way(stray_notification::<Sleeps>);
    each_way(one_by_one::<Sleeps>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    each_way(|| all_at_once::<Sleeps>(2));
    each_way(two_notifiers::<Sleeps>);
}

#[test]
fn a_waiter_that_is_moved_to_a_held_mutex_gets_it() {
    each_way(one_while_another_holds::<Sleeps>);
}

#[test]
fn a_timeout_loses_no_notification() {
    let all_expire = Config { timeouts: 3, rest_expire: true, ..exact() };
    explore(all_expire, || somebody_says_so::<Sleeps>(1, soon));
}
