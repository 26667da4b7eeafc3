//! The throughput mutex.

use crate::overtaking::reserver_is_next;
use std::time::Duration;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::time::{Clock, Deadline};
use ulocks_core::{Policy, Private};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::watchdog::watch;
use ulocks_unfair::{After, Bound, HandOff, RawThroughputMutex, ThroughputState};

/// Runs `check` with each way of waiting and with bounds that are met often: they leave by
/// different doors.
macro_rules! with_each {
    ($check:ident) => {
        $check::<Private, After>();
        $check::<Private, After<20_000>>();
        $check::<Private, HandOff>();
        $check::<Private<NoSpin>, HandOff>();
        $check::<Private<Adaptive, Counted>, After<1_000>>();
    };
}

#[test]
fn excludes() {
    fn check<P: Policy, B: Bound>() {
        let load = Load { operations: 4_000, ..Load::default() };
        stress::exclusion::<RawThroughputMutex<P, B>>(load).check(load);
        let moved_about = Load { shuffle: true, ..load };
        stress::exclusion::<RawThroughputMutex<P, B>>(moved_about).check(moved_about);
    }
    with_each!(check);
}

#[test]
fn survives_waiters_that_give_up() {
    fn check<P: Policy, B: Bound>() {
        let load = Load { operations: 4_000, ..Load::default() };
        stress::timed::<RawThroughputMutex<P, B>>(load).check(load);
        stress::cancel::<RawThroughputMutex<P, B>>(load).check(load);
    }
    with_each!(check);
}

#[test]
fn survives_a_storm_of_signals() {
    fn check<P: Policy, B: Bound>() {
        let load = Load { signals: true, ..Load::default() };
        for counts in [
            stress::exclusion::<RawThroughputMutex<P, B>>(load),
            stress::timed::<RawThroughputMutex<P, B>>(load),
        ] {
            counts.check(load);
            assert!(counts.signals > 0, "the storm passed without a signal");
        }
    }
    with_each!(check);
}

#[test]
fn serves_everybody_when_oversubscribed() {
    fn check<P: Policy, B: Bound>() {
        let (load, counts) = stress::oversubscribed::<RawThroughputMutex<P, B>>(300);
        counts.check(load);
        assert_eq!(counts.gave_up, 0);
    }
    with_each!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<P: Policy, B: Bound>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawThroughputMutex<P, B>>(4, 300), 300);
    }
    with_each!(check);
}

#[test]
fn nobody_overtakes_who_has_reserved() {
    // Longer than an arrival's patience, so that waiters sleep and are woken in vain.
    fn hold() {
        (0..1_000).for_each(|_| std::hint::spin_loop());
    }
    let reservations = reserver_is_next::<Private, HandOff>(vec![500; 8], hold)
        + reserver_is_next::<Private<NoSpin>, HandOff>(vec![1_000; 4], hold)
        + reserver_is_next::<Private, After<10_000>>(vec![200; 32], hold);
    assert!(reservations > 0, "nobody ever reserved");
}

#[test]
fn each_acquisition_is_counted_in_one_way() {
    let mutex = RawThroughputMutex::<Private<NoSpin, Counted>, HandOff>::new();
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
    let contended = counted.spun + counted.stolen + counted.woken + counted.reserved;
    assert_eq!(counted.contended, contended, "{counted:?}");
    assert_eq!(counted.fast(), 80_000 - contended);
    assert!(counted.slept > 0 || counted.woken + counted.reserved == 0, "{counted:?}");
}

/// The bound is that of everybody behind it, too.
#[test]
fn a_head_with_a_deadline_on_either_clock_reserves() {
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let lock = RawThroughputMutex::<Private<NoSpin>, After>::new();
        lock.lock();
        std::thread::scope(|scope| {
            let head = scope.spawn(|| {
                let token = lock.lock_until(Deadline::after_on(clock, Duration::from_secs(3_600)));
                // SAFETY: acquired the line before.
                token.map(|token| unsafe { lock.unlock(token) })
            });
            let address = std::ptr::from_ref(&lock).expose_provenance();
            let _watchdog = watch("a head that never reserves", move || {
                // SAFETY: the lock outlives the watchdog.
                let lock = unsafe {
                    &*std::ptr::with_exposed_provenance::<RawThroughputMutex<Private<NoSpin>, After>>(address)
                };
                format!("{:?}", lock.state())
            });
            while !lock.state().is_reserved() && !head.is_finished() {
                if lock.state().0 & ThroughputState::ASLEEP == 0 {
                    // Wakes it in vain. SAFETY: this thread holds the mutex.
                    unsafe { lock.unlock(()) };
                    lock.lock();
                }
                std::thread::sleep(Duration::from_micros(100));
            }
            // SAFETY: this thread holds the mutex.
            unsafe { lock.unlock(()) };
            assert_eq!(head.join().unwrap(), Some(()), "it has an hour");
        });
    }
}
