//! A client of the throughput mutex: once it is reserved, no thread overtakes the reserver.

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

/// The last holder of the mutex, and whether it was reserved by then.
#[derive(Default)]
struct Last {
    holder: usize,
    reserved: bool,
    /// How often it was reserved when it was released.
    reservations: usize,
}

// SAFETY: `last` is accessed under `mutex` only.
unsafe impl<P: InOneProcess, B: Rule> Sync for Shared<P, B> {}
// SAFETY: both parts are `Send`.
unsafe impl<P: InOneProcess, B: Rule> Send for Shared<P, B> {}

/// Threads, one for each of `rounds`, that acquire the mutex so often. A holder that has seen the
/// reservation of another is not the next holder. So between the reservation and the reserver's
/// acquisition there is one release and no acquisition. `hold` is run by the holder.
/// Returns how many reservations were seen.
pub fn reserver_is_next<P: InOneProcess, B: Rule>(
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
                assert!(!(last.reserved && last.holder == me), "the holder overtook the reserver");
                last.holder = me;
                hold();
                last.reserved = users.mutex.is_owed();
                last.reservations += usize::from(last.reserved);
            });
            // SAFETY: locked above.
            unsafe { users.mutex.unlock(()) };
        }
    });
    assert!(!shared.mutex.is_locked() && !shared.mutex.is_owed());
    // SAFETY: all users are gone.
    shared.last.with(|last| unsafe { (*last).reservations })
}
