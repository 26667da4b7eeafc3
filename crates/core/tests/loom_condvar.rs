//! The condition variable's protocol under loom. The bugs that it must find are in
//! `mutants/condvar.toml`.
//!
//! What these models cannot see: a wake-up that goes to a younger sleeper of higher priority (the
//! modelled kernel is first in, first out), and the orderings (advance)/(look), because a
//! read-modify-write under loom always finds the newest counts.
#![cfg(world = "loom")]

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

/// Each grade of the futex, and one wait that may end spuriously.
fn each_way(model: fn()) {
    explore(exact(), model);
    explore(Config { grade: Grade::Cheap, ..exact() }, model);
    explore(unordered(1), model);
    explore(Config { spurious: 1, ..exact() }, model);
}

/// Loom visits the order that shows a grant left behind only with one preemption more.
fn timed() -> Config {
    Config { timeouts: 3, ..Config::bounded(3) }
}

/// Every timed wait ends sooner or later.
fn all_expire() -> Config {
    Config { timeouts: 3, rest_expire: true, ..exact() }
}

#[test]
fn a_notification_is_not_missed() {
    each_way(one_waiter::<SLEEPS>);
    each_way(stray_notification::<SLEEPS>);
    each_way(one_by_one::<SLEEPS>);
    explore(unordered(3), one_waiter::<SLEEPS>);
    explore(unordered(3), stray_notification::<SLEEPS>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    each_way(|| all_at_once::<SLEEPS>(2));
    each_way(all_while_holding::<SLEEPS>);
    each_way(two_notifiers::<SLEEPS>);
    explore(exact(), || all_at_once::<SLEEPS>(3));
}

#[test]
fn a_waiter_that_is_moved_to_a_held_mutex_gets_it() {
    explore(exact(), one_by_one_while_holding::<SLEEPS>);
    each_way(one_beside_a_locker::<SLEEPS>);
    each_way(one_while_another_holds::<SLEEPS>);
}

#[test]
fn a_timeout_loses_no_notification() {
    explore(timed(), timed_and_untimed::<SLEEPS>);
    explore(all_expire(), || somebody_says_so::<SLEEPS>(1));
    explore(all_expire(), || somebody_says_so::<SLEEPS>(2));
}

#[test]
fn two_mutexes_do_not_mix() {
    each_way(two_mutexes::<SLEEPS>);
    explore(exact(), a_second_mutex_on_the_way::<SLEEPS>);
}

#[test]
fn who_is_moved_need_not_be_who_was_notified() {
    explore(exact(), stray_requeue::<SLEEPS>);
}
