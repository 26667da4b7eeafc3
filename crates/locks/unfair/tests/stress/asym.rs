//! The asymmetric mutex.

use ulocks_core::Private;
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::interrupt::{Interrupted, InterruptibleMutex as _};
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::interrupt::struck;
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::suite::{self, Effort};
use ulocks_unfair::{AsymMutex, RawAsymMutex};

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawAsymMutex<Private>,
    RawAsymMutex<Private<NoSpin>>,
    RawAsymMutex<Private<Patience<20_000>>>,
    RawAsymMutex<Private<Adaptive, Counted>>,
}

ulocks_testkit::interrupt_tests! { Effort::FULL; RawAsymMutex<Private>, RawAsymMutex<Private<NoSpin>> }

#[test]
fn counters_agree_with_one_another() {
    suite::counters_agree::<RawAsymMutex<Private<NoSpin, Counted>>>();
}

/// A barrier that is refused after gates have opened: marks may get lost, and no thread sleeps for
/// ever all the same.
#[test]
fn survives_the_loss_of_the_barrier() {
    let load = Load::default();
    stress::exclusion::<RawAsymMutex<Private>>(load).check(); // opens gates
    let old_kernel = force_fallback(Capability::Membarrier);
    for _ in 0..3 {
        stress::exclusion::<RawAsymMutex<Private<NoSpin>>>(load).check();
        stress::timed::<RawAsymMutex<Private<NoSpin>>>(load).check();
    }
    drop(old_kernel);
    stress::exclusion::<RawAsymMutex<Private<NoSpin>>>(load).check();
}

/// Without the barrier a waiter looks at the mutex now and then, and learns of a signal all the
/// same.
#[test]
fn a_handler_ends_a_wait_that_looks_now_and_then() {
    let mutex = AsymMutex::new(());
    (0..1_000_000).for_each(|_| drop(mutex.lock())); // opens its gate
    let _old_kernel = force_fallback(Capability::Membarrier);
    let held = mutex.lock();
    assert_eq!(struck(|| mutex.lock_interruptible().map(drop)), Err(Interrupted));
    drop(held);
    assert_eq!(mutex.lock_interruptible().map(drop), Ok(()));
}
