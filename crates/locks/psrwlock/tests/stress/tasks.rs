//! Tasks, alone and beside threads.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::{RawRwLock, RawRwLockAsync, RawRwLockUpgrade};
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, Configuration, Eager, PhaseFair, RawPsRwLock, ReadToken, ReadersFirst, Sifted};
use ulocks_testkit::cancel::cancel;
use ulocks_testkit::rw::stress;
use ulocks_testkit::stress::Load;
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};

type AtSlots = Sifted<BULK, Private, PhaseFair, Eager>;

#[test]
fn tasks_and_threads_exclude_one_another() {
    fn check<L: RawRwLockUpgrade + Send + Sync + 'static>() {
        let load = Load { threads: 8, operations: 2_000, ..Load::default() };
        stress::mixed::<L>(load).check();
        stress::cancel::<L>(load).check();
        stress::upgrading::<L>(load).check();
    }
    check::<Tasks<RawPsRwLock>>();
    check::<Mixed<RawPsRwLock<Private<NoSpin>>>>();
    check::<Restless<RawPsRwLock<AtSlots>>>();
    check::<Mixed<RawPsRwLock<Sifted<BULK, Private, ReadersFirst>>>>();
}

/// What a future has acquired.
enum Held {
    Read(ReadToken),
    Write,
    Upgradable,
}

/// The lock is as new whatever is dropped, and no thread is stranded by it.
fn is_free_whatever_is_dropped<D: Configuration<Policy: InOneProcess>>() {
    let (lock, ends, inside) = (RawPsRwLock::<D>::new(), AtomicBool::new(false), AtomicU32::new(0));
    type Acquisition<'a> = Pin<Box<dyn Future<Output = Held> + Send + 'a>>;
    let acquire = |kind| -> Acquisition<'_> {
        match kind {
            1 => Box::pin(async { Held::Read(lock.read_async().await) }),
            2 => Box::pin(async {
                lock.write_async().await;
                Held::Write
            }),
            _ => Box::pin(async {
                lock.upgradable_async().await;
                Held::Upgradable
            }),
        }
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut acquired = 0_u32;
            while !ends.load(Relaxed) || acquired == 0 {
                acquired += 1;
                // SAFETY: each releases what it has acquired.
                unsafe {
                    if acquired.is_multiple_of(3) {
                        lock.write();
                        assert_eq!(inside.swap(1, Relaxed), 0, "a writer is not alone");
                        inside.store(0, Relaxed);
                        lock.unlock_write(());
                    } else {
                        let token = lock.read();
                        assert_eq!(inside.load(Relaxed), 0, "a reader is beside a writer");
                        lock.unlock_read(token);
                    }
                }
            }
        });
        let acquired = cancel(acquire, |_, held| {
            // SAFETY: a future that is ready has acquired; an upgrade that is dropped releases.
            unsafe {
                match held {
                    Held::Read(token) => lock.unlock_read(token),
                    Held::Write => {
                        assert_eq!(inside.swap(1, Relaxed), 0, "a writer is not alone");
                        inside.store(0, Relaxed);
                        lock.unlock_write(());
                    }
                    Held::Upgradable => drop(lock.upgrade_async(())),
                }
            }
        });
        ends.store(true, Relaxed);
        assert!(acquired > 0, "nothing was ever acquired");
        thread.join().expect("the thread panicked");
    });
    lock.try_write().expect("the lock is free");
    // SAFETY: acquired above.
    unsafe { lock.unlock_write(()) };
    assert_eq!(lock.state(), ulocks_psrwlock::State::UNLOCKED, "something is left behind");
}

#[test]
fn the_lock_is_free_whatever_is_dropped() {
    is_free_whatever_is_dropped::<Sifted>();
    is_free_whatever_is_dropped::<Sifted<BULK, Private<NoSpin>>>();
    is_free_whatever_is_dropped::<AtSlots>();
    is_free_whatever_is_dropped::<Sifted<BULK, Private, ReadersFirst>>();
}
