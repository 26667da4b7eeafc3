//! The mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::suite::{self, Effort};
use ulocks_unfair::RawMutex;

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawMutex<Private>,
    RawMutex<Private<NoSpin>>,
    RawMutex<Private<Patience<20_000>>>,
    RawMutex<Private<Adaptive, Counted>>,
}

#[test]
fn counters_agree_with_one_another() {
    suite::counters_agree::<RawMutex<Private<NoSpin, Counted>>>();
}
