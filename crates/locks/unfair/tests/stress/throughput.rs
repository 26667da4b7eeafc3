//! The throughput mutex.

use crate::overtaking::reserver_is_next;
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::suite::{self, Effort};
use ulocks_testkit::watchdog::watch;
use ulocks_unfair::{After, HandOff, RawThroughputMutex, ThroughputState};

// Each way of waiting, and bounds that are met often: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::LESS;
    RawThroughputMutex<Private, After>,
    RawThroughputMutex<Private, After<20_000>>,
    RawThroughputMutex<Private, HandOff>,
    RawThroughputMutex<Private<NoSpin>, HandOff>,
    RawThroughputMutex<Private<Adaptive, Counted>, After<1_000>>,
}

ulocks_testkit::interrupt_tests! {
    Effort::LESS;
    RawThroughputMutex<Private, After>,
    RawThroughputMutex<Private, HandOff>,
    RawThroughputMutex<Private<NoSpin>, HandOff>,
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
    let counted = suite::contended::<RawThroughputMutex<Private<NoSpin, Counted>, HandOff>>(20_000);
    let contended = counted.spun + counted.stolen + counted.woken + counted.reserved;
    assert_eq!(counted.contended, contended, "{counted:?}");
    assert_eq!(counted.fast(), 80_000 - contended);
    assert!(counted.slept > 0 || counted.woken + counted.reserved == 0, "{counted:?}");
}

/// The bound is that of all threads behind it, too.
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
