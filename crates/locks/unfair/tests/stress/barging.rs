//! The mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::suite::{self, Effort};
use ulocks_unfair::RawBargingMutex;

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawBargingMutex<Private>,
    RawBargingMutex<Private<NoSpin>>,
    RawBargingMutex<Private<Patience<20_000>>>,
    RawBargingMutex<Private<Adaptive, Counted>>,
}

ulocks_testkit::interrupt_tests! { Effort::FULL; RawBargingMutex<Private>, RawBargingMutex<Private<NoSpin>> }

#[test]
fn counters_agree_with_one_another() {
    suite::counters_agree::<RawBargingMutex<Private<NoSpin, Counted>>>();
}
