//! Clients of every reader-writer lock, for what operations drawn by lot (`phases`) may not meet.

use ulocks_core::Private;
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::raw::{Metered, RawRwLock};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_psrwlock::{
    BULK, Configuration, Distributed, HANDLER, NESTED, PhaseFair, RawPsRwLock, Sifted, URGENT,
};
use ulocks_testkit::model::rw::{
    self as model,
    Role::{Read, Write},
};
use ulocks_testkit::rw::{Counts, stress};
use ulocks_testkit::stress::Load;
use ulocks_testkit::watchdog::watch;

const THREE: u8 = BULK | URGENT | NESTED;

/// Runs `check` with each way of waiting, with slots, and with all classes.
macro_rules! with_each {
    ($check:ident) => {
        $check::<Sifted>();
        $check::<Sifted<BULK, Private<NoSpin>>>();
        $check::<Sifted<THREE, Private<Patience<20_000>>>>();
        $check::<Sifted<{ THREE | HANDLER }, Private<Adaptive, Counted>>>();
        $check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Distributed<2>>>();
    };
}

/// Few threads: no other would wake one that was forgotten, and all sleep as soon as
/// they can.
#[test]
fn nobody_is_left_asleep() {
    fn check<D: Configuration>() {
        let _watchdog = watch("nobody is left asleep", || "somebody is".into());
        model::no_lost_wake::<RawPsRwLock<D>>(&[Write, Write], 5_000);
        model::no_lost_wake::<RawPsRwLock<D>>(&[Read, Write], 5_000);
        model::no_lost_wake::<RawPsRwLock<D>>(&[Read, Read, Write], 3_000);
        model::no_lost_wake::<RawPsRwLock<D>>(&[Read, Write, Write], 3_000);
    }
    check::<Sifted<THREE, Private<NoSpin>>>();
    check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Distributed<2>>>();
}

#[test]
fn waits_go_on_after_signals() {
    /// On a busy machine a run may be over before the first signal.
    fn storm(run: fn(Load) -> Counts) {
        let load = Load { operations: 2_000, signals: true, ..Load::default() };
        let struck = (0..100).map(|_| run(load)).any(|counts| {
            counts.check();
            counts.signals > 0
        });
        assert!(struck, "the storms passed without a signal");
    }
    fn check<D: Configuration>() {
        storm(stress::upgrading::<RawPsRwLock<D>>);
        storm(stress::cancel::<RawPsRwLock<D>>);
    }
    with_each!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<D: Configuration>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawPsRwLock<D>>(1, 3, 60), 60);
        assert_eq!(stress::last_unlocker_unmaps::<RawPsRwLock<D>>(0, 3, 60), 60);
        assert!(stress::last_unlocker_unmaps::<RawPsRwLock<D>>(3, 1, 60) <= 60);
    }
    with_each!(check);
}

/// Each acquisition is counted once, whichever way it went; a thread that waited was contended, and
/// one that slept had been.
#[test]
fn counts_what_happened() {
    type L<R> = RawPsRwLock<Sifted<THREE, Private<NoSpin, Counted>, PhaseFair, R>>;
    fn check<L: RawRwLock + Metered<Meter = Counted>>() {
        let lock = L::INIT;
        // SAFETY: here and below, each token is that of the step before.
        unsafe {
            (0..3).for_each(|_| lock.unlock_read(lock.read()));
            (0..2).for_each(|_| lock.unlock_write(lock.write()));
            let held = lock.try_read().expect("free");
            assert!(lock.try_write().is_none());
            lock.unlock_read(held);
        }
        let Snapshot { acquired, slept, woke, .. } = lock.meter().snapshot();
        assert_eq!((acquired, slept, woke), (6, 0, 0));
    }
    check::<L<ulocks_psrwlock::Central>>();
    check::<L<Distributed<2>>>();
}
