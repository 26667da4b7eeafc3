//! The asymmetric mutex.

use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Policy, Private};
use ulocks_testkit::stress::{self, Load};
use ulocks_unfair::RawAsymMutex;

/// Runs `check` with each way of waiting: they leave by different doors.
macro_rules! with_each_patience {
    ($check:ident) => {
        $check::<Private>();
        $check::<Private<NoSpin>>();
        $check::<Private<Patience<20_000>>>();
        $check::<Private<Adaptive, Counted>>();
    };
}

#[test]
fn excludes() {
    fn check<P: Policy>() {
        let load = Load::default();
        stress::exclusion::<RawAsymMutex<P>>(load).check(load);
        let moved_about = Load { shuffle: true, ..load };
        stress::exclusion::<RawAsymMutex<P>>(moved_about).check(moved_about);
    }
    with_each_patience!(check);
}

#[test]
fn survives_waiters_that_give_up() {
    fn check<P: Policy>() {
        let load = Load::default();
        stress::timed::<RawAsymMutex<P>>(load).check(load);
        stress::cancel::<RawAsymMutex<P>>(load).check(load);
    }
    with_each_patience!(check);
}

#[test]
fn survives_a_storm_of_signals() {
    fn check<P: Policy>() {
        let load = Load { signals: true, ..Load::default() };
        for counts in [stress::exclusion::<RawAsymMutex<P>>(load), stress::timed::<RawAsymMutex<P>>(load)] {
            counts.check(load);
            assert!(counts.signals > 0, "the storm passed without a signal");
        }
    }
    with_each_patience!(check);
}

#[test]
fn serves_everybody_when_oversubscribed() {
    fn check<P: Policy>() {
        let (load, counts) = stress::oversubscribed::<RawAsymMutex<P>>(1_000);
        counts.check(load);
        assert_eq!(counts.gave_up, 0);
    }
    with_each_patience!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<P: Policy>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawAsymMutex<P>>(4, 500), 500);
    }
    with_each_patience!(check);
}

#[test]
fn counters_agree_with_one_another() {
    let mutex = RawAsymMutex::<Private<NoSpin, Counted>>::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let token = mutex.lock();
                    // SAFETY: locked the line before.
                    unsafe { mutex.unlock(token) };
                }
            });
        }
    });
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, 80_000);
    assert_eq!(counted.spun, 0, "without patience nobody spins");
    assert!(counted.contended <= counted.acquired, "{counted:?}");
    // Whoever slept had marked the word, or found the mark of another, and every mark ends in a
    // wake-up.
    assert!(counted.slept == 0 || counted.woke > 0, "{counted:?}");
    assert!(counted.contended == 0 || counted.slept + counted.woke > 0, "{counted:?}");
}

/// A barrier that is refused after gates have opened: marks may get lost, and nobody sleeps for
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
