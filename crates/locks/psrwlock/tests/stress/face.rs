//! Clients of every reader-writer lock, for what operations drawn by lot (`phases`) may not meet.

use crate::mixed::idle;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::raw::{Metered, RawRwLock};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Configuration, Eager, HANDLER, NESTED, Nested, Partial, PhaseFair,
    PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith, PsRwLockWriteGuard as WriteGuard,
    RawPsRwLock, Sifted, URGENT, Urgent,
};
use ulocks_testkit::model::rw::{
    self as model,
    Role::{Read, Write},
};
use ulocks_testkit::rw::{Counts, stress};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::stress::Load;
use ulocks_testkit::thread::together;
use ulocks_testkit::watchdog::watch;

const THREE: u8 = BULK | URGENT | NESTED;

/// Runs `check` with each way of waiting, with slots, and with all classes.
macro_rules! with_each {
    ($check:ident) => {
        $check::<Sifted>();
        $check::<Sifted<BULK, Private<NoSpin>>>();
        $check::<Sifted<THREE, Private<Patience<20_000>>>>();
        $check::<Sifted<{ THREE | HANDLER }, Private<Adaptive, Counted>>>();
        $check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>>();
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
    check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>>();
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

/// Gets the lock in some way, calls the closure, and lets go in some way.
type Use<D> = fn(&PsRwLockWith<AtomicUsize, D>, &mut dyn FnMut(&AtomicUsize));

/// One user of each kind at once on a page, of which the last takes the page away. Readers come one
/// at a time: of two that are inside together none knows that it is the last.
#[test]
fn the_last_of_all_kinds_may_unmap() {
    fn check<D: Configuration>() {
        let writers: [Use<D>; 4] = [
            |lock, body| body(&lock.write()),
            |lock, body| {
                let held = lock.write();
                body(&held);
                WriteGuard::unlock_fair(held);
            },
            |lock, body| body(&UpgradableGuard::upgrade(lock.upgradable_read())),
            |lock, body| {
                let mut held = lock.upgradable_read();
                Partial::exclude::<Bulk>(&mut held);
                body(&UpgradableGuard::upgrade(held));
            },
        ];
        let readers: [Use<D>; 7] = [
            |lock, body| body(&lock.read()),
            |lock, body| body(&lock.read_in::<Nested>()),
            |lock, body| body(&WriteGuard::downgrade(lock.write())),
            |lock, body| body(&WriteGuard::downgrade_to_upgradable(lock.write())),
            |lock, body| body(&UpgradableGuard::downgrade(lock.upgradable_read())),
            |lock, body| body(&lock.upgradable_read()),
            |lock, body| {
                let mut held = lock.upgradable_read();
                Partial::exclude::<Urgent>(&mut held);
                body(&held);
            },
        ];
        let _watchdog = watch("last touch", || "somebody waits for a lock that is gone".into());
        for round in 0..20 * readers.len() {
            let users: Vec<_> = writers.into_iter().chain([readers[round % readers.len()]]).collect();
            let page = Mapping::private().leak::<PsRwLockWith<AtomicUsize, D>>();
            // SAFETY: a fresh page, writable, larger than a lock and aligned to more than it needs.
            unsafe { page.write(PsRwLockWith::new(AtomicUsize::new(users.len()))) };
            let (address, start) = (page.expose_provenance(), Barrier::new(users.len()));
            let unmapped = together(users.len(), move |me| {
                start.wait();
                idle(50 * me as u32);
                let page = std::ptr::with_exposed_provenance_mut::<PsRwLockWith<AtomicUsize, D>>(address);
                let mut last = false;
                // SAFETY: this user is not counted out yet, so the page is mapped.
                users[me](unsafe { &*page }, &mut |left| last = left.fetch_sub(1, Relaxed) == 1);
                if last {
                    // SAFETY: all the others have let go before this one got the lock.
                    assert_eq!(unsafe { libc::munmap(page.cast(), 4096) }, 0);
                }
                usize::from(last)
            });
            assert_eq!(unmapped.into_iter().sum::<usize>(), 1);
        }
    }
    check::<Sifted>();
    check::<Sifted<THREE, Private<NoSpin>>>();
    check::<Sifted<{ THREE | HANDLER }>>();
    check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>>();
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
    check::<L<Eager>>();
}

/// Behind one slow reader a writer falls asleep once. Counted, since how long that takes is the
/// machine's: switches that the writer's thread asked for. Locks of the tests beside this one may
/// share an exit with a lock, and wake its writer: hence several locks.
#[test]
fn a_writer_behind_a_slow_reader_sleeps_once() {
    fn sleeps() -> libc::c_long {
        // SAFETY: a usage is a few numbers, for which all-zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is writable.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
        usage.ru_nvcsw
    }
    fn check<D: Configuration>() {
        let locks: [_; 8] = std::array::from_fn(|_| RawPsRwLock::<D>::new());
        let slept = locks.each_ref().map(|lock| {
            let token = lock.read();
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let before = sleeps();
                    lock.write();
                    let slept = sleeps() - before;
                    // SAFETY: acquired above.
                    unsafe { lock.unlock_write(()) };
                    slept
                });
                std::thread::sleep(Duration::from_millis(100));
                // SAFETY: acquired above.
                unsafe { lock.unlock_read(token) };
                writer.join().unwrap()
            })
        });
        let once = slept.iter().filter(|&&slept| slept <= 3).count();
        assert!(once >= locks.len() / 2, "the writers slept {slept:?} times");
    }
    check::<Sifted>();
    check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>>();
}
