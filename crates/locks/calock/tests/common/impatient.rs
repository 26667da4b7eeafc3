//! A client of the calock: waiters that give up before they would be promoted.

use core::time::Duration;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, with};

/// Waiters of which every second one, the first included, has a deadline that is earlier than the
/// end of its first sleep, beside a holder that releases and comes again: a thread that has none
/// gets the lock.
pub fn impatient_strand_nobody<L: RawMutex + Send + Sync + 'static>(waiters: usize) {
    let lock = Arc::new(new_lock::<L>());
    let held = lock.lock();
    let others: Vec<_> = (0..waiters)
        .map(|me| {
            with(&lock, move |lock| {
                let token = if me % 2 == 0 {
                    lock.lock_until(Deadline::after(Duration::from_nanos(1)))
                } else {
                    Some(lock.lock())
                };
                let Some(token) = token else { return me % 2 == 0 };
                // SAFETY: the token is from the acquisition above.
                unsafe { lock.unlock(token) };
                true
            })
        })
        .collect();
    // SAFETY: locked above.
    unsafe { lock.unlock(held) };
    let again = lock.lock();
    // SAFETY: locked the line before.
    unsafe { lock.unlock(again) };
    assert!(others.into_iter().all(|other| other.join().expect("a waiter panicked")));
    assert!(!lock.is_locked(), "the lock is locked although its last holder released it");
}
