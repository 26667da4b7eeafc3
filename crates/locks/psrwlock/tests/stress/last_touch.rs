//! Law 2: the thread that releases the lock last may free its memory at once, in whatever way it
//! held it and lets go.

use crate::mixed::idle;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Configuration, Distributed, HANDLER, NESTED, Nested, Partial, PhaseFair,
    PsRwLockReadGuard as ReadGuard, PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith,
    PsRwLockWriteGuard as WriteGuard, Sifted, URGENT, Urgent,
};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

const PAGE: usize = 4096;
const ROUNDS: usize = 20;
const THREE: u8 = BULK | URGENT | NESTED;

type Lock<D> = PsRwLockWith<AtomicUsize, D>;
/// Gets the lock in some way, calls the closure, and lets go in some way.
type Use<D> = fn(&Lock<D>, &mut dyn FnMut(&AtomicUsize));

fn writers<D: Configuration>() -> Vec<Use<D>> {
    vec![
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
    ]
}

/// Of these there is one at a time: of two that are inside together none knows that it is the last.
fn readers<D: Configuration>() -> Vec<Use<D>> {
    vec![
        |lock, body| body(&lock.read()),
        |lock, body| body(&lock.read_in::<Urgent>()),
        |lock, body| {
            let held = lock.read_in::<Nested>();
            body(&held);
            ReadGuard::unlock_fair(held);
        },
        |lock, body| body(&WriteGuard::downgrade(lock.write())),
        |lock, body| body(&WriteGuard::downgrade_to_upgradable(lock.write())),
        |lock, body| body(&UpgradableGuard::downgrade(lock.upgradable_read())),
        |lock, body| body(&lock.upgradable_read()),
        |lock, body| {
            let mut held = lock.upgradable_read();
            Partial::exclude::<Urgent>(&mut held);
            body(&held);
        },
        |lock, body| {
            let held = lock.upgradable_read();
            body(&held);
            UpgradableGuard::unlock_fair(held);
        },
    ]
}

/// One user of each kind at once on a page, of which the last takes the page away.
fn check<D: Configuration>() {
    let writers = writers::<D>();
    let _watchdog = watch("last touch", || "somebody waits for a lock that is gone".into());
    for reader in readers::<D>() {
        for _ in 0..ROUNDS {
            let users: Vec<_> = writers.iter().copied().chain([reader]).collect();
            let page = Mapping::private().leak::<Lock<D>>();
            // SAFETY: a fresh page, writable, larger than a lock and aligned to more than it needs.
            unsafe { page.write(Lock::new(AtomicUsize::new(users.len()))) };
            let (address, start, unmapped) =
                (page.expose_provenance(), Barrier::new(users.len()), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for (nth, user) in users.into_iter().enumerate() {
                    let (start, unmapped) = (&start, &unmapped);
                    scope.spawn(move || {
                        start.wait();
                        idle(50 * nth as u32);
                        // SAFETY: this user is not counted out yet, so the page is mapped.
                        let lock = unsafe { &*std::ptr::with_exposed_provenance::<Lock<D>>(address) };
                        let mut last = false;
                        user(lock, &mut |left| last = left.fetch_sub(1, Relaxed) == 1);
                        if last {
                            // SAFETY: all the others have let go before this one got the lock.
                            let result =
                                unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(address), PAGE) };
                            assert_eq!(result, 0);
                            unmapped.fetch_add(1, Relaxed);
                        }
                    });
                }
            });
            assert_eq!(unmapped.into_inner(), 1);
        }
    }
}

#[test]
fn the_last_of_all_kinds_may_unmap() {
    check::<Sifted>();
    check::<Sifted<THREE, Private<NoSpin>>>();
    check::<Sifted<{ THREE | HANDLER }>>();
    check::<Sifted<THREE, Private<NoSpin>, PhaseFair, Distributed<2>>>();
}
