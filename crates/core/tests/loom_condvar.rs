//! The condition variable's protocol under loom, and every seeded bug found.
//!
//! What these models cannot see: a wake-up that goes to a younger sleeper of higher priority (the modelled kernel is first
//! in, first out), and the orderings (M)/(W), because a read-modify-write under loom always finds the newest ledger.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod condvar_clients;

use condvar_clients::*;
use core::time::Duration;
use ulocks_core::condvar::seeded;
use ulocks_core::model::{Config, Grade, explore, finds_bug_saying};

fn exact() -> Config {
    Config::default()
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the words and from the mutex.
///
/// One preemption where several sleep: loom may let two that poll run in turn for ever, and takes that for a failure.
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

/// Loom visits the order that shows the seeded bug only with one preemption more.
fn timed() -> Config {
    Config { timeouts: 3, ..Config::bounded(3) }
}

/// Every timed wait ends sooner or later.
fn all_expire() -> Config {
    Config { timeouts: 3, rest_expire: true, ..exact() }
}

#[test]
fn a_notification_is_not_missed() {
    each_way(one_waiter::<SLEEPS, SOUND>);
    each_way(stray_notification::<SLEEPS, SOUND>);
    each_way(one_by_one::<SLEEPS, SOUND>);
    explore(unordered(3), one_waiter::<SLEEPS, SOUND>);
    explore(unordered(3), stray_notification::<SLEEPS, SOUND>);
}

#[test]
fn finds_a_notification_that_does_not_move() {
    finds_bug_saying("deadlock", exact(), one_waiter::<SLEEPS, { seeded::NO_MOVE }>);
}

#[test]
fn finds_a_waiter_that_reads_late() {
    finds_bug_saying("deadlock", exact(), one_waiter::<SLEEPS, { seeded::READS_LATE }>);
}

#[test]
fn finds_a_waiter_that_registers_late() {
    finds_bug_saying("deadlock", exact(), one_waiter::<SLEEPS, { seeded::REGISTERS_LATE }>);
}

#[test]
fn finds_a_waiter_that_reads_after_registering() {
    finds_bug_saying("deadlock", exact(), stray_notification::<SLEEPS, { seeded::READS_AFTER_REGISTERING }>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    each_way(|| all_at_once::<SLEEPS, SOUND>(2));
    each_way(all_while_holding::<SLEEPS, SOUND>);
    each_way(two_notifiers::<SLEEPS>);
    explore(exact(), || all_at_once::<SLEEPS, SOUND>(3));
}

#[test]
fn finds_a_requeued_waiter_that_forgets_the_others() {
    finds_bug_saying("deadlock", exact(), || all_at_once::<SLEEPS, { seeded::PLAIN_LOCK }>(2));
}

#[test]
fn finds_a_requeue_that_wakes_nobody() {
    finds_bug_saying("deadlock", exact(), all_while_holding::<SLEEPS, { seeded::REQUEUES_ALL }>);
}

#[test]
fn a_timeout_loses_no_notification() {
    explore(timed(), timed_and_untimed::<SLEEPS, SOUND>);
    explore(all_expire(), || somebody_says_so::<SLEEPS, SOUND>(1));
    explore(all_expire(), || somebody_says_so::<SLEEPS, SOUND>(2));
}

#[test]
fn finds_a_timeout_that_leaves_its_grant() {
    finds_bug_saying("deadlock", timed(), timed_and_untimed::<SLEEPS, { seeded::TIMEOUT_LEAVES_GRANT }>);
}

#[test]
fn finds_a_timeout_that_swallows_its_grant() {
    finds_bug_saying("only 0 taken", all_expire(), || {
        somebody_says_so::<SLEEPS, { seeded::TIMEOUT_SWALLOWS_GRANT }>(1);
    });
}

#[test]
fn two_mutexes_do_not_mix() {
    each_way(two_mutexes::<SLEEPS, SOUND>);
    explore(exact(), a_second_mutex_on_the_way::<SLEEPS, SOUND>);
}

#[test]
fn finds_sleepers_moved_to_the_wrong_mutex() {
    finds_bug_saying("deadlock", exact(), two_mutexes::<SLEEPS, { seeded::TRUSTS_AIM }>);
}

#[test]
fn finds_a_second_mutex_that_comes_quietly() {
    finds_bug_saying("deadlock", exact(), a_second_mutex_on_the_way::<SLEEPS, { seeded::MIXES_QUIETLY }>);
}

#[test]
fn finds_a_requeue_that_gives_up_on_a_mismatch() {
    finds_bug_saying("deadlock", exact(), a_second_mutex_on_the_way::<SLEEPS, { seeded::IGNORES_MISMATCH }>);
}

#[test]
fn who_is_moved_need_not_be_who_was_notified() {
    explore(exact(), stray_requeue::<SLEEPS, SOUND>);
}

#[test]
fn finds_a_requeued_mark_that_is_cleared_too_early() {
    // By far the longest of all: execution 1,079,699, after a minute and a half.
    let patient = Config { max_duration: Some(Duration::from_secs(900)), ..Config::bounded(3) };
    finds_bug_saying("deadlock", patient, stray_requeue::<SLEEPS, { seeded::CLEARS_REQUEUED }>);
}
