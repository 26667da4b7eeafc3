//! The condition variables on these mutexes: sleepers that a notification moves to a word that is
//! free, locked or marked, beside threads that barge in and release without a look at the queue.

use crate::barging::{Sleeper as Mutex, sampled};
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::condvar::{Waits, WaitsAsync};
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::{After, QueueCondvar};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::thread::with;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, all_give_up, one_by_one, one_gives_up};
use ulocks_unfair::{HandOff, RawThroughputMutex};

/// How many wait.
const MANY: [usize; 2] = [2, 8];

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for waiters in MANY {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Mutex>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Mutex>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Mutex>(waiters));
    }
}

#[test]
fn a_waiter_that_gives_up_strands_nobody_that_was_moved_here() {
    for patient in MANY {
        explore(sampled(2 * patient, 1), move || one_gives_up::<Mutex>(patient));
    }
}

fn serves_all<L: RawMutex<Token = ()> + Send + Sync + 'static>() {
    for waiters in MANY {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<L>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<L>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<L>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<L>(waiters));
    }
}

#[test]
fn those_who_were_moved_to_the_queue_all_get_the_mutex() {
    serves_all::<RawThroughputMutex<Private<NoSpin>>>();
    serves_all::<RawThroughputMutex<Private>>();
    serves_all::<RawThroughputMutex<Private<NoSpin>, HandOff>>();
}

#[test]
fn waiters_that_give_up_at_the_same_time_all_leave() {
    type Mutex = RawThroughputMutex<Private<NoSpin>>;
    explore(Config { preemptions: Some(2), ..Config::exhaustive() }, || all_give_up::<Mutex>(2));
    explore(sampled(3, 1), || all_give_up::<Mutex>(3));
}

/// Nothing orders two tasks but the queue that they come to and leave.
#[test]
fn a_task_that_leaves_sees_the_nodes_beside_its_own() {
    type Condvar = QueueCondvar<Private<NoSpin>, After>;
    fn comes_and_leaves(condvar: &Condvar) {
        let mut wait = pin!(condvar.notified());
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    explore(Config::exhaustive(), || {
        let condvar = Arc::new(Condvar::new());
        let other = with(&condvar, comes_and_leaves);
        comes_and_leaves(&condvar);
        other.join().unwrap();
        assert!(!condvar.notify_one(), "a task is left behind");
    });
}
