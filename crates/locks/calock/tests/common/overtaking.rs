//! A client of the calock: once the lock is kept for a waiter, the next acquisition is that
//! waiter's, and it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::queue::Rule;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::together;

/// Whether the lock was kept for its holder, and how often it was promised.
///
/// Atomics of the system: they are no steps of the model, and a flag written between an acquisition
/// and the return from it is read by the same thread.
pub struct Promises {
    kept: AtomicBool,
    made: AtomicUsize,
}

// SAFETY: it writes two atomics.
unsafe impl Sealed for Promises {}

impl Meter for Promises {
    const INIT: Self = Self { kept: AtomicBool::new(false), made: AtomicUsize::new(0) };

    fn count(&self, event: Event) {
        match event {
            Event::Reserved => self.kept.store(true, Relaxed),
            Event::Promoted => _ = self.made.fetch_add(1, Relaxed),
            _ => {}
        }
    }
}

/// A lock that is observed.
pub type Observed<I> = RawCalock<Private<NoSpin, Promises>, I>;

struct Shared<I: Rule> {
    lock: Observed<I>,
    /// Whether the lock was kept for a thread when it was held last.
    promised: UnsafeCell<bool>,
}

// SAFETY: `promised` is accessed under `lock` only.
unsafe impl<I: Rule> Sync for Shared<I> {}
// SAFETY: both parts are `Send`.
unsafe impl<I: Rule> Send for Shared<I> {}

/// Threads of which each acquires the lock `rounds` times. If it was kept for a waiter when it was
/// held last, then the next holder is a waiter for which it was kept. `hold` is run by the
/// holder. Returns how often the lock was promised to a waiter, and each of these acquired it.
pub fn promoted_is_next<I: Rule>(
    threads: usize,
    rounds: usize,
    hold: impl Fn() + Copy + Send + Sync + 'static,
) -> usize {
    let shared = Arc::new(Shared::<I> { lock: new_lock(), promised: UnsafeCell::new(false) });
    let users = Arc::clone(&shared);
    let kept = together(threads, move |_| {
        let lock = &users.lock;
        let mut kept = 0;
        for _ in 0..rounds {
            lock.lock();
            let mine = Metered::meter(lock).kept.swap(false, Relaxed);
            kept += usize::from(mine);
            users.promised.with_mut(|promised| {
                // SAFETY: the lock is held.
                let promised = unsafe { &mut *promised };
                assert!(!*promised || mine, "the promoted was overtaken");
                hold();
                *promised = lock.is_owed();
            });
            // SAFETY: locked above.
            unsafe { lock.unlock(()) };
        }
        kept
    });
    let made = Metered::meter(&shared.lock).made.load(Relaxed);
    assert_eq!(kept.into_iter().sum::<usize>(), made, "not everybody who was promoted acquired the lock so");
    assert!(!shared.lock.is_locked() && !shared.lock.is_owed());
    made
}
