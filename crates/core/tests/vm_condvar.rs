//! The condition variable's protocol on the virtual machine. The bugs that it must find are in
//! `mutants/condvar.toml`.
//!
//! Beside what loom tries, a failing exchange of the counts may see old ones, a mutex may be
//! taken by any of many threads, and deadlines pass at any moment. What these models cannot see: a
//! wake-up that goes to a younger sleeper of higher priority.
#![cfg(world = "vm")]

mod condvar_clients;
#[path = "condvar_clients/hurry.rs"]
mod hurry;

use condvar_clients::*;
use ulocks_core::model::{Config, explore};
use ulocks_testkit::model::{install_handler, until_struck};

/// By chance, with spurious wake-ups.
fn sampled() -> Config {
    Config { spurious: 2, ..Config::sampled(3_000) }
}

#[test]
fn a_notification_is_not_missed() {
    explore(Config::exhaustive(), one_waiter::<SLEEPS>);
    explore(sampled(), one_waiter::<SLEEPS>);
    explore(sampled(), stray_notification::<SLEEPS>);
    explore(sampled(), one_by_one::<SLEEPS>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    for waiters in [2, 3, 8] {
        explore(sampled(), move || all_at_once::<SLEEPS>(waiters));
    }
    explore(sampled(), all_while_holding::<SLEEPS>);
    explore(sampled(), two_notifiers::<SLEEPS>);
}

#[test]
fn a_waiter_that_is_moved_to_a_held_mutex_gets_it() {
    explore(sampled(), one_by_one_while_holding::<SLEEPS>);
    explore(sampled(), one_beside_a_locker::<SLEEPS>);
    explore(sampled(), one_while_another_holds::<SLEEPS>);
    explore(sampled(), one_by_one_while_holding::<SPINS>);
    explore(sampled(), one_beside_a_locker::<SPINS>);
    explore(sampled(), one_while_another_holds::<SPINS>);
}

#[test]
fn a_notification_does_not_touch_a_mutex_that_is_gone() {
    explore(sampled(), a_mutex_that_is_freed::<SLEEPS>);
    explore(sampled(), a_mutex_that_is_freed::<SPINS>);
}

#[test]
fn a_timeout_loses_no_notification() {
    explore(sampled(), || timed_and_untimed::<SLEEPS>(soon));
    // It counts the waiters that say to have been notified, so no wait may end spuriously.
    let exact = Config { spurious: 0, ..sampled() };
    for waiters in [1, 2, 4] {
        explore(exact.clone(), move || somebody_says_so::<SLEEPS>(waiters, soon));
    }
}

#[test]
fn an_interruption_loses_no_notification() {
    fn check<const NS: u32>() {
        explore(sampled(), || {
            install_handler();
            timed_and_untimed::<NS>(until_struck);
        });
        for waiters in [1, 2, 4] {
            explore(Config { spurious: 0, ..sampled() }, move || {
                install_handler();
                somebody_says_so::<NS>(waiters, until_struck);
            });
        }
    }
    check::<SLEEPS>();
    check::<SPINS>();
}

#[test]
fn a_cancelled_waiter_passes_its_notification_on() {
    explore(sampled(), one_is_cancelled::<SLEEPS>);
    explore(sampled(), one_is_cancelled::<SPINS>);
}

#[test]
fn a_thread_that_hurries_waiters_leaves_a_freed_mutex_alone() {
    explore(sampled(), hurry::while_the_mutex_goes::<SLEEPS>);
    explore(sampled(), hurry::while_the_mutex_goes::<SPINS>);
    explore(sampled(), hurry::after_the_first_mutex_went::<SLEEPS>);
}

#[test]
fn two_mutexes_do_not_mix() {
    explore(sampled(), two_mutexes::<SLEEPS>);
    // Without the Release or the Acquire of (mix) one execution in some 6,000 fails.
    let many = Config { executions: 30_000, ..sampled() };
    explore(many, a_second_mutex_on_the_way::<SLEEPS>);
}

/// Each waiter polls once before it sleeps, so that a notification meets spinners, sleepers and
/// waiters on their way.
#[test]
fn a_notification_finds_spinners_and_sleepers() {
    explore(Config::exhaustive(), one_waiter::<SPINS>);
    explore(sampled(), one_waiter::<SPINS>);
    explore(sampled(), stray_notification::<SPINS>);
    explore(sampled(), one_by_one::<SPINS>);
    explore(sampled(), stray_requeue::<SPINS>);
    for waiters in [2, 3, 8] {
        explore(sampled(), move || all_at_once::<SPINS>(waiters));
    }
    explore(sampled(), all_while_holding::<SPINS>);
    explore(sampled(), two_notifiers::<SPINS>);
    explore(sampled(), two_mutexes::<SPINS>);
    explore(sampled(), a_second_mutex_on_the_way::<SPINS>);
}

#[test]
fn a_timeout_takes_no_notification_from_a_spinner() {
    explore(sampled(), || timed_and_untimed::<SPINS>(soon));
    let exact = Config { spurious: 0, ..sampled() };
    for waiters in [1, 2, 4] {
        explore(exact.clone(), move || somebody_says_so::<SPINS>(waiters, soon));
    }
}

#[test]
fn who_is_moved_need_not_be_who_was_notified() {
    explore(sampled(), stray_requeue::<SLEEPS>);
    explore(sampled(), stray_requeue_beside_a_timeout::<SLEEPS>);
}
