//! Futex calls that the kernel refuses: a wait panics, a wake-up aborts.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::panic::catch_unwind;
use ulocks_core::futex::{Futex, Private};
use ulocks_testkit::refusal;

/// The sleeper is awake and can do something about it.
#[test]
fn a_wait_that_is_refused_panics() {
    refusal::survives("a_wait_that_is_refused_panics", || {
        static FUTEX: Futex<Private> = Futex::new(0);
        refusal::wait_refused(|| _ = FUTEX.wait(0, None));
    });
}

/// A thread would sleep for ever.
#[test]
fn a_wake_up_that_is_refused_is_not_lost_in_a_panic() {
    refusal::aborts("a_wake_up_that_is_refused_is_not_lost_in_a_panic", &refusal::WAKE, || {
        static FUTEX: Futex<Private> = Futex::new(0);
        refusal::refuse_futex(libc::FUTEX_WAKE_BITSET);
        let woken = catch_unwind(|| FUTEX.key().wake(1));
        panic!("the wake-up has come to its end: {woken:?}");
    });
}
