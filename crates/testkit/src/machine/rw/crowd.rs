//! Ten thousand readers and writers that wait for one reader-writer lock at the same moment.

use super::super::crowd::{Crowd, TEN_THOUSAND, wait};
use super::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use ulocks_core::raw::RawRwLock;

/// Ten thousand threads, every second of them to write, sleep on one `L` that a writer holds; then
/// it is released, and all get it.
///
/// # Panics
/// If one does not, and if the test does not run on
/// [`Counting`](super::super::allocations::Counting).
pub fn ten_thousand_wait<L: RawRwLock + Send + Sync + 'static>() -> Crowd {
    wait_for_rw_lock::<L>(TEN_THOUSAND)
}

/// As [`ten_thousand_wait`], with another number.
///
/// # Panics
/// As there.
pub fn wait_for_rw_lock<L: RawRwLock + Send + Sync + 'static>(threads: usize) -> Crowd {
    let table = Arc::new(Table::<L>::new());
    let came = Arc::new(AtomicUsize::new(0));
    let held = table.lock.write();
    let crowd = wait(
        threads,
        {
            let (table, came) = (Arc::clone(&table), Arc::clone(&came));
            move || {
                if came.fetch_add(1, Relaxed) % 2 == 0 {
                    table.look_and_unlock(table.lock.read(), 0);
                } else {
                    table.write_and_unlock(table.lock.write(), 0);
                }
            }
        },
        // SAFETY: the token is from the acquisition above.
        || unsafe { table.lock.unlock_write(held) },
    );
    assert!(!table.lock.is_locked(), "the lock is locked although everybody has left");
    assert_eq!(table.torn.load(Relaxed), 0, "somebody saw half a write");
    assert_eq!(table.look(0), crowd.waited / 2, "writes were lost");
    crowd
}
