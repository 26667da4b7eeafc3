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
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::condvar::{Sequence, Waits, WaitsAsync};
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::{InOrder, QueueMutex};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::spin_until;
use ulocks_core::time::Deadline;
use ulocks_testkit::model::{install_handler, until_struck};
use ulocks_testkit::tasks::{Monitor, block_on};
use ulocks_testkit::thread::{Arc, with};

/// By chance, with spurious wake-ups.
fn sampled() -> Config {
    Config { spurious: 2, ..Config::sampled(3_000) }
}

#[test]
fn a_notification_is_not_missed() {
    explore(Config::exhaustive(), one_waiter::<Sleeps>);
    explore(sampled(), one_waiter::<Sleeps>);
    explore(sampled(), stray_notification::<Sleeps>);
    explore(sampled(), one_by_one::<Sleeps>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    for waiters in [2, 3, 8] {
        explore(sampled(), move || all_at_once::<Sleeps>(waiters));
    }
    explore(sampled(), all_while_holding::<Sleeps>);
    explore(sampled(), two_notifiers::<Sleeps>);
}

#[test]
fn a_waiter_that_is_moved_to_a_held_mutex_gets_it() {
    explore(sampled(), one_by_one_while_holding::<Sleeps>);
    explore(sampled(), one_beside_a_locker::<Sleeps>);
    explore(sampled(), one_while_another_holds::<Sleeps>);
    explore(sampled(), one_by_one_while_holding::<Spins>);
    explore(sampled(), one_beside_a_locker::<Spins>);
    explore(sampled(), one_while_another_holds::<Spins>);
}

#[test]
fn a_notification_does_not_touch_a_mutex_that_is_gone() {
    explore(sampled(), a_mutex_that_is_freed::<Sleeps>);
    explore(sampled(), a_mutex_that_is_freed::<Spins>);
}

#[test]
fn a_timeout_loses_no_notification() {
    explore(sampled(), || timed_and_untimed::<Sleeps>(soon));
    // It counts the waiters that say to have been notified, so no wait may end spuriously.
    let exact = Config { spurious: 0, ..sampled() };
    for waiters in [1, 2, 4] {
        explore(exact.clone(), move || somebody_says_so::<Sleeps>(waiters, soon));
    }
}

#[test]
fn an_interruption_loses_no_notification() {
    fn check<L: Lock>() {
        explore(sampled(), || {
            install_handler();
            timed_and_untimed::<L>(until_struck);
        });
        for waiters in [1, 2, 4] {
            explore(Config { spurious: 0, ..sampled() }, move || {
                install_handler();
                somebody_says_so::<L>(waiters, until_struck);
            });
        }
    }
    check::<Sleeps>();
    check::<Spins>();
}

#[test]
fn a_cancelled_waiter_passes_its_notification_on() {
    explore(sampled(), one_is_cancelled::<Sleeps>);
    explore(sampled(), one_is_cancelled::<Spins>);
}

#[test]
fn a_thread_that_hurries_waiters_leaves_a_freed_mutex_alone() {
    explore(sampled(), hurry::while_the_mutex_goes::<0>);
    explore(sampled(), hurry::while_the_mutex_goes::<1>);
    explore(sampled(), hurry::after_the_first_mutex_went::<0>);
}

#[test]
fn two_mutexes_do_not_mix() {
    explore(sampled(), two_mutexes::<Sleeps>);
    // Without the Release or the Acquire of (mix) one execution in some 6,000 fails.
    let many = Config { executions: 30_000, ..sampled() };
    explore(many, a_second_mutex_on_the_way::<Sleeps>);
}

/// Each waiter polls once before it sleeps, so that a notification meets spinners, sleepers and
/// waiters on their way.
#[test]
fn a_notification_finds_spinners_and_sleepers() {
    explore(Config::exhaustive(), one_waiter::<Spins>);
    explore(sampled(), one_waiter::<Spins>);
    explore(sampled(), stray_notification::<Spins>);
    explore(sampled(), one_by_one::<Spins>);
    explore(sampled(), stray_requeue::<Spins>);
    for waiters in [2, 3, 8] {
        explore(sampled(), move || all_at_once::<Spins>(waiters));
    }
    explore(sampled(), all_while_holding::<Spins>);
    explore(sampled(), two_notifiers::<Spins>);
    explore(sampled(), two_mutexes::<Spins>);
    explore(sampled(), a_second_mutex_on_the_way::<Spins>);
}

#[test]
fn a_timeout_takes_no_notification_from_a_spinner() {
    explore(sampled(), || timed_and_untimed::<Spins>(soon));
    let exact = Config { spurious: 0, ..sampled() };
    for waiters in [1, 2, 4] {
        explore(exact.clone(), move || somebody_says_so::<Spins>(waiters, soon));
    }
}

#[test]
fn who_is_moved_need_not_be_who_was_notified() {
    explore(sampled(), stray_requeue::<Sleeps>);
    explore(sampled(), stray_requeue_beside_a_timeout::<Sleeps>);
}

/// The mutex in order has this condition variable, and tasks wait for it.
type Tasks = Monitor<InOrderMutex>;
/// Threads that spin, and tasks.
type Some = Monitor<QueueMutex<Private, InOrder>, 2>;

#[test]
fn tasks_miss_no_notification() {
    fn check<L: Lock>() {
        explore(Config { preemptions: Some(3), ..Config::exhaustive() }, one_waiter::<L>);
        explore(sampled(), one_waiter::<L>);
        explore(sampled(), stray_notification::<L>);
        explore(sampled(), one_by_one::<L>);
        explore(sampled(), two_notifiers::<L>);
        for waiters in [2, 3, 8] {
            explore(sampled(), move || all_at_once::<L>(waiters));
        }
        explore(sampled(), all_while_holding::<L>);
        explore(sampled(), one_beside_a_locker::<L>);
        explore(sampled(), two_mutexes::<L>);
    }
    check::<Tasks>();
    check::<Some>();
}

type InOrderMutex = QueueMutex<Private<NoSpin>, InOrder>;

/// Of two tasks that wait one is dropped while there is one notification: the other one gets it.
fn one_is_dropped() {
    let condvar = Arc::new(Sequence::<InOrderMutex>::new());
    let kept = {
        let mut futures = [(); 2].map(|()| Box::pin(condvar.notified()));
        for future in &mut futures {
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        let notifier = with(&condvar, |condvar| assert!(condvar.notify_one(), "nobody was there"));
        let [dropped, kept] = futures;
        drop(dropped);
        block_on(kept);
        notifier.join().unwrap();
        format!("{condvar:?}")
    };
    assert!(kept.starts_with("waiting=0 spinning=0 granted=0"), "{kept}");
}

/// A task that was notified wakes up, as far as it has come, although no other notification
/// follows.
fn one_is_told() {
    let condvar = Arc::new(Sequence::<InOrderMutex>::new());
    let task = with(&condvar, |condvar| block_on(pin!(condvar.notified())));
    spin_until(|| condvar.notify_one());
    task.join().unwrap();
}

#[test]
fn a_notification_that_finds_a_task_wakes_it() {
    explore(Config { preemptions: Some(3), ..Config::exhaustive() }, one_is_told);
    explore(sampled(), one_is_told);
}

/// A future that is dropped passes on what it got.
#[test]
fn a_dropped_future_loses_no_notification() {
    explore(sampled(), one_is_dropped);
    // One that has passed, since a task comes to its deadline late.
    let limits: [fn() -> Deadline; 2] = [soon, || Deadline::after(Duration::ZERO)];
    for limit in limits {
        explore(sampled(), move || timed_and_untimed::<Tasks>(limit));
        explore(sampled(), move || timed_and_untimed::<Some>(limit));
    }
}
