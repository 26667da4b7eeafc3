//! The mutex.

use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Policy, Private, Shared};
use ulocks_fair::{Line, RawFairMutex};
use ulocks_testkit::order::Recorder;
use ulocks_testkit::stress::{self, Load};

/// Runs `check` with each protocol and each way of waiting: they leave by different doors.
macro_rules! with_each_policy {
    ($check:ident) => {
        $check::<Private>();
        $check::<Private<NoSpin>>();
        $check::<Private<Patience<3_000>>>();
        $check::<Private<Adaptive, Counted>>();
        $check::<Shared>();
        $check::<Shared<NoSpin>>();
    };
}

#[test]
fn excludes() {
    fn check<P: Policy<Scope: Line>>() {
        let load = Load::default();
        stress::exclusion::<RawFairMutex<P>>(load).check(load);
        let moved_about = Load { shuffle: true, ..load };
        stress::exclusion::<RawFairMutex<P>>(moved_about).check(moved_about);
    }
    with_each_policy!(check);
}

#[test]
fn survives_waiters_that_give_up() {
    fn check<P: Policy<Scope: Line>>() {
        let load = Load::default();
        stress::timed::<RawFairMutex<P>>(load).check(load);
        stress::cancel::<RawFairMutex<P>>(load).check(load);
        let many = Load { threads: 40, operations: 1_000, ..load };
        stress::timed::<RawFairMutex<P>>(many).check(many);
        stress::cancel::<RawFairMutex<P>>(many).check(many);
    }
    with_each_policy!(check);
}

#[test]
fn survives_a_storm_of_signals() {
    fn check<P: Policy<Scope: Line>>() {
        let load = Load { signals: true, ..Load::default() };
        for counts in [stress::exclusion::<RawFairMutex<P>>(load), stress::timed::<RawFairMutex<P>>(load)] {
            counts.check(load);
            assert!(counts.signals > 0, "the storm passed without a signal");
        }
    }
    with_each_policy!(check);
}

#[test]
fn serves_everybody_when_oversubscribed() {
    fn check<P: Policy<Scope: Line>>() {
        let (load, counts) = stress::oversubscribed::<RawFairMutex<P>>(1_000);
        counts.check(load);
        assert_eq!(counts.gave_up, 0);
    }
    with_each_policy!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<P: Policy<Scope: Line>>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawFairMutex<P>>(4, 500), 500);
    }
    with_each_policy!(check);
}

#[test]
fn counters_agree_with_one_another() {
    let mutex = RawFairMutex::<Private<NoSpin, Counted>>::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    mutex.lock();
                    // SAFETY: locked the line before.
                    unsafe { mutex.unlock(()) };
                }
            });
        }
    });
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, 80_000);
    assert!(counted.contended <= counted.acquired, "{counted:?}");
    // Every sleep ends by a wake-up or spuriously, and nobody is woken who did not sleep.
    assert!(counted.woke <= counted.slept, "{counted:?}");
}

/// The order of grants is the order of queueing, over a million acquisitions in all, with waiters
/// that give up.
#[test]
fn who_came_first_is_served_first() {
    fn check<P: Policy<Scope: Line, Meter = Recorder>>() -> usize {
        let mut acquired = 0;
        for (threads, operations) in [(2, 60_000), (4, 20_000), (16, 5_000), (64, 1_250)] {
            let load = Load { threads, operations, hold: 20, ..Load::default() };
            let counts = stress::order::<RawFairMutex<P>>(load);
            counts.check(load);
            acquired += counts.total();
        }
        acquired
    }
    let acquired = check::<Private<Adaptive, Recorder>>()
        + check::<Private<NoSpin, Recorder>>()
        + check::<Shared<Adaptive, Recorder>>()
        + check::<Shared<NoSpin, Recorder>>();
    assert!(acquired >= 1_000_000, "{acquired} are too few to say much");
}
