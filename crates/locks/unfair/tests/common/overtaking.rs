//! A client of the throughput mutex: once it is owed to a waiter, no thread overtakes that waiter.

use std::sync::Arc;
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::Rule;
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::together;
use ulocks_unfair::RawThroughputMutex;

struct Shared<P: InOneProcess, B: Rule> {
    mutex: RawThroughputMutex<P, B>,
    last: UnsafeCell<Last>,
}

/// The last holder of the mutex, and whether it was owed to a waiter by then.
#[derive(Default)]
struct Last {
    holder: usize,
    owed: bool,
    /// How often it was owed when it was released.
    debts: usize,
}

// SAFETY: `last` is accessed under `mutex` only.
unsafe impl<P: InOneProcess, B: Rule> Sync for Shared<P, B> {}
// SAFETY: both parts are `Send`.
unsafe impl<P: InOneProcess, B: Rule> Send for Shared<P, B> {}

/// Threads, one for each of `rounds`, that acquire the mutex so often. A holder that has seen that
/// it is owed to a waiter is not the next holder. So then there is one release and no acquisition
/// until that waiter acquires. `hold` is run by the holder. Returns how often it was owed.
pub fn owed_is_next<P: InOneProcess, B: Rule>(
    rounds: Vec<usize>,
    hold: impl Fn() + Copy + Send + Sync + 'static,
) -> usize {
    let shared = Arc::new(Shared::<P, B> { mutex: new_lock(), last: UnsafeCell::new(Last::default()) });
    let users = Arc::clone(&shared);
    together(rounds.len(), move |me| {
        for _ in 0..rounds[me] {
            users.mutex.lock();
            users.last.with_mut(|last| {
                // SAFETY: the mutex is held.
                let last = unsafe { &mut *last };
                assert!(!(last.owed && last.holder == me), "the holder overtook whom the mutex was owed to");
                last.holder = me;
                hold();
                last.owed = users.mutex.is_owed();
                last.debts += usize::from(last.owed);
            });
            // SAFETY: locked above.
            unsafe { users.mutex.unlock(()) };
        }
    });
    assert!(!shared.mutex.is_locked() && !shared.mutex.is_owed());
    // SAFETY: all users are gone.
    shared.last.with(|last| unsafe { (*last).debts })
}
