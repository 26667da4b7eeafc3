//! The condition variable of the mutexes with a queue, on the virtual machine. The bugs that it
//! must find are in `mutants/queue_condvar.toml`.
#![cfg(world = "vm")]

#[allow(dead_code, reason = "some are for condition variables that requeue")]
mod condvar_clients;
#[path = "condvar_clients/exact.rs"]
mod exact;

use condvar_clients::*;
use exact::{
    a_moved_waiter_does_not_give_up, a_notifier_waits_next, all_in_turn, exactly_one_wins, nobody_is_left,
    the_last_waiter_frees,
};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::{After, HandOff, QueueMutex};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model::{install_handler, until_struck};
use ulocks_testkit::tasks::Monitor;

type Barging = QueueMutex<Private, After>;
type BargingSleeper = QueueMutex<Private<NoSpin>, After>;
type Strict = QueueMutex<Private<NoSpin>, HandOff>;

/// By chance, with spurious wake-ups.
fn sampled() -> Config {
    Config { spurious: 2, ..Config::sampled(1_000) }
}

/// Waiters of the condition variable are tasks, or each second one is.
type Tasks = Monitor<Strict>;
type Some = Monitor<BargingSleeper, 2>;

/// Runs `$check` on each mutex, also if its waiters are tasks: all but of two promises. A future
/// that is dropped passes on what it got. And a signal handler does not end its wait.
macro_rules! on_tasks_too {
    ($check:ident) => {
        on_each!($check);
        $check::<Tasks>();
        $check::<Some>();
    };
}

/// Runs `$check` on each mutex.
macro_rules! on_each {
    ($check:ident) => {
        $check::<BargingSleeper>();
        $check::<Strict>();
        $check::<Barging>();
    };
}

#[test]
fn a_notification_is_not_missed() {
    // Without a limit there are more than a million executions.
    let all = |most| Config { preemptions: Some(most), ..Config::exhaustive() };
    explore(all(7), one_waiter::<Strict>);
    explore(all(5), one_waiter::<BargingSleeper>);
    explore(all(3), one_waiter::<Tasks>);
    fn check<L: Lock>() {
        explore(sampled(), one_waiter::<L>);
        explore(sampled(), stray_notification::<L>);
        explore(sampled(), one_by_one::<L>);
        explore(sampled(), two_notifiers::<L>);
        explore(sampled(), stray_requeue::<L>);
    }
    on_tasks_too!(check);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    fn check<L: Lock>() {
        for waiters in [2, 3, 8] {
            explore(sampled(), move || all_at_once::<L>(waiters));
        }
        explore(sampled(), all_while_holding::<L>);
        explore(sampled(), one_by_one_while_holding::<L>);
        explore(sampled(), one_beside_a_locker::<L>);
        explore(sampled(), one_while_another_holds::<L>);
    }
    on_tasks_too!(check);
}

#[test]
fn each_wait_ends_by_the_notification() {
    fn check<L: Lock>() {
        for waiters in [1, 2, 3, 8] {
            for while_holding in [false, true] {
                explore(sampled(), move || _ = all_in_turn::<L>(waiters, while_holding));
            }
        }
    }
    on_each!(check);
}

#[test]
fn of_a_timeout_and_a_notification_one_wins() {
    let exact = Config { spurious: 0, ..sampled() };
    fn check<L: Lock>() {
        for waiters in [1, 2, 4] {
            explore(sampled(), move || exactly_one_wins::<L>(waiters));
            explore(sampled(), move || a_moved_waiter_does_not_give_up::<L>(waiters));
        }
    }
    explore(Config { timeouts: true, ..Config::exhaustive() }, || exactly_one_wins::<Strict>(1));
    on_each!(check);
    for waiters in [1, 2, 4] {
        explore(exact.clone(), move || somebody_says_so::<Strict>(waiters, soon));
        explore(exact.clone(), move || somebody_says_so::<BargingSleeper>(waiters, soon));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    fn check<L: Lock>() {
        explore(sampled(), || timed_and_untimed::<L>(soon));
        explore(sampled(), stray_requeue_beside_a_timeout::<L>);
        for timed in [1, 2, 4] {
            explore(sampled(), move || nobody_is_left::<L>(timed));
        }
    }
    on_tasks_too!(check);
}

#[test]
fn a_notifier_takes_no_notification_of_its_own() {
    let many = Config { executions: 3_000, ..sampled() };
    explore(many, a_notifier_waits_next::<Barging>);
    explore(sampled(), a_notifier_waits_next::<Strict>);
}

#[test]
fn an_interruption_loses_no_notification() {
    fn check<L: Lock>() {
        explore(sampled(), || {
            install_handler();
            timed_and_untimed::<L>(until_struck);
        });
    }
    on_each!(check);
}

#[test]
fn whoever_returns_may_free_both() {
    fn check<L: Lock>() {
        for waiters in [1, 2, 4] {
            for while_holding in [false, true] {
                explore(sampled(), move || the_last_waiter_frees::<L>(waiters, while_holding));
            }
        }
        explore(sampled(), a_mutex_that_is_freed::<L>);
    }
    on_tasks_too!(check);
}

#[test]
fn two_mutexes_do_not_mix() {
    fn check<L: Lock>() {
        explore(sampled(), two_mutexes::<L>);
        explore(sampled(), a_second_mutex_on_the_way::<L>);
    }
    on_tasks_too!(check);
}
