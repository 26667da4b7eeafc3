//! The mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::order::Recorder;
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::suite::{self, Effort};
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawFairMutex<Private>,
    RawFairMutex<Private<NoSpin>>,
    RawFairMutex<Private<Patience<3_000>>>,
    RawFairMutex<Private<Adaptive, Counted>>,
    Tasks<RawFairMutex<Private>>,
    Mixed<RawFairMutex<Private<NoSpin>>>,
    Restless<RawFairMutex<Private<Adaptive, Counted>>>,
}

ulocks_testkit::interrupt_tests! {
    Effort::FULL;
    RawFairMutex<Private>,
    RawFairMutex<Private<NoSpin>>,
}

#[test]
fn survives_many_waiters_that_give_up() {
    fn check<L: RawMutex + Send + Sync + 'static>() {
        let many = Load { threads: 40, operations: 1_000, ..Load::default() };
        stress::timed::<L>(many).check();
        stress::cancel::<L>(many).check();
    }
    check::<RawFairMutex<Private>>();
    check::<RawFairMutex<Private<NoSpin>>>();
    check::<RawFairMutex<Private<Patience<3_000>>>>();
    check::<RawFairMutex<Private<Adaptive, Counted>>>();
    check::<Mixed<RawFairMutex<Private>>>();
}

#[test]
fn counters_agree_with_one_another() {
    let counted = suite::contended::<RawFairMutex<Private<NoSpin, Counted>>>(20_000);
    assert!(counted.contended <= counted.acquired, "{counted:?}");
    // Every sleep ends by a wake-up or spuriously, and no thread is woken that did not sleep.
    assert!(counted.woke <= counted.slept, "{counted:?}");
}

/// The order of grants is the order of queueing, over a million acquisitions in all, with waiters
/// that give up.
#[test]
fn who_came_first_is_served_first() {
    fn check<L: RawMutex + Metered<Meter = Recorder> + Send + Sync + 'static>() -> usize {
        let mut acquired = 0;
        for (threads, operations) in [(2, 120_000), (4, 40_000), (16, 10_000), (64, 2_500), (1_000, 20)] {
            let load = Load { threads, operations, hold: 20, ..Load::default() };
            let counts = stress::order::<L>(load);
            counts.check();
            println!("{threads} threads: {} acquisitions of {}", counts.total(), threads * operations);
            acquired += counts.total();
        }
        acquired
    }
    let acquired = check::<RawFairMutex<Private<Adaptive, Recorder>>>()
        + check::<RawFairMutex<Private<NoSpin, Recorder>>>()
        + check::<Mixed<RawFairMutex<Private<NoSpin, Recorder>>>>();
    assert!(acquired >= 1_000_000, "{acquired} are too few to say much");
}
