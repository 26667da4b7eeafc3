//! The asymmetric mutex.

use ulocks_core::Private;
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::suite::{self, Effort};
use ulocks_unfair::RawAsymMutex;

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
    stress::exclusion::<RawAsymMutex<Private>>(load).check(load); // opens gates
    let old_kernel = force_fallback(Capability::Membarrier);
    for _ in 0..3 {
        stress::exclusion::<RawAsymMutex<Private<NoSpin>>>(load).check(load);
        stress::timed::<RawAsymMutex<Private<NoSpin>>>(load).check(load);
    }
    drop(old_kernel);
    stress::exclusion::<RawAsymMutex<Private<NoSpin>>>(load).check(load);
}
