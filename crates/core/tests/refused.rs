//! Futex calls that the kernel refuses: a wait panics, a wake-up aborts, and so does a wait on a
//! condition variable.
#![cfg(all(world = "machine", not(miri)))]

use std::panic::catch_unwind;
use ulocks_core::condvar::RawCondvar;
use ulocks_core::futex::{Futex, Local};
use ulocks_core::raw::RawMutex;
use ulocks_testkit::plain::Plain;
use ulocks_testkit::refusal;

/// The sleeper is awake and can do something about it.
#[test]
fn a_wait_that_is_refused_panics() {
    refusal::survives("a_wait_that_is_refused_panics", || {
        static FUTEX: Futex<Local> = Futex::new(0);
        refusal::wait_refused(|| _ = FUTEX.wait(0, None));
    });
}

/// A thread would sleep for ever.
#[test]
fn a_wake_up_that_is_refused_is_not_lost_in_a_panic() {
    refusal::aborts("a_wake_up_that_is_refused_is_not_lost_in_a_panic", &refusal::WAKE, || {
        static FUTEX: Futex<Local> = Futex::new(0);
        refusal::refuse_futex(libc::FUTEX_WAKE_BITSET);
        let woken = catch_unwind(|| FUTEX.key().wake(1));
        panic!("the wake-up has come to its end: {woken:?}");
    });
}

/// A waiter that unwound would stay counted.
#[test]
fn a_refused_wait_on_a_condition_variable_aborts() {
    refusal::aborts("a_refused_wait_on_a_condition_variable_aborts", &refusal::WAIT, || {
        static MUTEX: Plain = Plain::new();
        static CONDVAR: RawCondvar<Plain> = RawCondvar::new();
        refusal::wait_refused(|| {
            MUTEX.lock();
            // SAFETY: the mutex is held.
            let _ = unsafe { CONDVAR.wait(&MUTEX, (), None) };
        });
    });
}
