//! Tasks and wakers.

use crate::{Plain, all_outcomes};
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::future::{AtomicWaker, Notify, block_on};
use ulocks_vm::sync::{
    Arc, AtomicBool,
    Ordering::{Acquire, Release},
};
use ulocks_vm::thread;

/// A task that another thread completes. `look_again`: whether the task looks again after it has
/// registered, without which a wake-up is lost.
fn task(look_again: bool) {
    let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false), Plain::default()));
    let other = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.2.add(1);
            shared.1.store(true, Release);
            shared.0.wake();
        })
    };
    block_on(poll_fn(|context| {
        if shared.1.load(Acquire) {
            return Poll::Ready(());
        }
        shared.0.register_by_ref(context.waker());
        if look_again && shared.1.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!(shared.2.get(), 1);
    other.join().unwrap();
}

#[test]
fn a_task_is_woken() {
    explore(Config::exhaustive(), || task(true));
}

#[test]
fn a_task_that_does_not_look_again_may_never_be_woken() {
    finds_bug_saying("deadlock", Config::exhaustive(), || task(false));
}

#[test]
fn a_waker_that_is_kept_is_a_leak() {
    finds_bug_saying("leak", Config::exhaustive(), || {
        block_on(poll_fn(|context| {
            std::mem::forget(context.waker().clone());
            Poll::Ready(())
        }));
    });
}

/// A task may be polled although nobody woke it.
#[test]
fn one_poll_is_spurious() {
    let model = || {
        let polls = Cell::new(0);
        let other = Cell::new(None);
        block_on(poll_fn(|context| {
            polls.set(polls.get() + 1);
            if polls.get() == 1 {
                let waker = context.waker().clone();
                other.set(Some(thread::spawn(move || waker.wake())));
                return Poll::Pending;
            }
            if polls.get() == 2 { Poll::Pending } else { Poll::Ready(()) }
        }));
        other.take().unwrap().join().unwrap();
        polls.get()
    };
    // Without the spurious poll the second wait would never end.
    finds_bug_saying("deadlock", Config::exhaustive(), move || {
        model();
    });
    all_outcomes(
        || {
            let notify = Arc::new(Notify::new());
            notify.notify();
            notify.wait();
        },
        [()],
    );
}

/// As in loom: which of them a wake-up would be for is not said.
#[test]
fn two_waiters_of_one_notify_are_a_bug() {
    finds_bug_saying("only a single thread may wait", Config::exhaustive(), || {
        let notify = Arc::new(Notify::new());
        let other = {
            let notify = Arc::clone(&notify);
            thread::spawn(move || notify.wait())
        };
        notify.notify();
        notify.wait();
        notify.notify();
        other.join().unwrap();
    });
}
