//! A kernel that refuses the futex calls of a lock: the process aborts if other threads depend on
//! the caller.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::thread;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::NoSpin;
use ulocks_fair::{RawFairMutex, SemaphoreWith};
use ulocks_testkit::refusal;

type Here = Private<NoSpin, Counted>;

/// The mutex names the node, which is on the stack that would unwind.
#[test]
fn a_waiter_of_a_fair_mutex_that_is_refused_does_not_free_its_node() {
    refusal::waiter_aborts::<RawFairMutex<Here>>(
        "a_waiter_of_a_fair_mutex_that_is_refused_does_not_free_its_node",
    );
}

#[test]
fn a_release_of_a_fair_mutex_that_cannot_wake_does_not_go_on() {
    refusal::release_aborts::<RawFairMutex<Here>>(
        "a_release_of_a_fair_mutex_that_cannot_wake_does_not_go_on",
    );
}

/// As for the fair mutex.
#[test]
fn a_waiter_of_a_semaphore_that_is_refused_does_not_free_its_node() {
    refusal::aborts("a_waiter_of_a_semaphore_that_is_refused_does_not_free_its_node", &refusal::WAIT, || {
        let semaphore = SemaphoreWith::<Here>::new(0);
        refusal::wait_refused(|| semaphore.acquire().forget());
    });
}

#[test]
fn a_release_of_a_semaphore_that_cannot_wake_does_not_go_on() {
    refusal::aborts("a_release_of_a_semaphore_that_cannot_wake_does_not_go_on", &refusal::WAKE, || {
        let semaphore = SemaphoreWith::<Here>::new(0);
        thread::scope(|scope| {
            scope.spawn(|| semaphore.acquire().forget());
            ulocks_testkit::limit::until("a thread sleeps", || semaphore.raw().meter().snapshot().slept != 0);
            refusal::refuse_futex(libc::FUTEX_WAKE_BITSET);
            let released = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| semaphore.release(1)));
            eprintln!("a release without a wake-up has come to its end: {released:?}");
            // Not to wait for a thread that no thread wakes.
            std::process::exit(3);
        });
    });
}
