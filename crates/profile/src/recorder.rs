//! What the calling thread counts: its table, from its first event while the profile is on to its
//! end. Only locks call this, and no signal handler.

use crate::sums::{Key, Table};
use core::cell::Cell;

/// The table of this thread. Its drop is the end of the thread.
struct Mine(Cell<Option<&'static Table>>);

std::thread_local! {
    static MINE: Mine = const { Mine(Cell::new(None)) };
}

impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(table) = self.0.take() {
            table.give_back();
        }
    }
}

/// The table of this thread, unless the thread is at its end.
#[inline]
fn table() -> Option<&'static Table> {
    #[cold]
    fn take(mine: &Mine) -> &'static Table {
        let table = Table::take(std::thread::current().name().unwrap_or(""));
        mine.0.set(Some(table));
        table
    }
    MINE.try_with(|mine| mine.0.get().unwrap_or_else(|| take(mine))).ok()
}

/// The table of this thread, if it has one.
#[inline]
fn known_table() -> Option<&'static Table> {
    MINE.try_with(|mine| mine.0.get()).ok().flatten()
}

/// The thread has begun to wait for `lock`, while the profile is on.
pub(crate) fn contended(lock: usize) {
    if let Some(table) = table() {
        table.begin_wait(lock);
    }
}

/// The thread waits no longer, if it waited for the lock of `key`.
pub(crate) fn ended(key: &Key) {
    if let Some(table) = known_table() {
        table.end_wait(key);
    }
}

/// The thread has acquired the lock of `key`, while the profile is on.
#[inline]
pub fn acquired(key: &Key) {
    if let Some(table) = table() {
        table.begin_hold(key);
    }
}

/// The thread is about to release `lock`; nothing happens if it was acquired while the profile was
/// off.
#[inline]
pub fn released(lock: usize) {
    if let Some(table) = known_table() {
        table.end_hold(lock);
    }
}

/// The thread has waited for the lock of `key` since `began`, by [`now`](crate::ticks::now).
pub fn waited(key: &Key, began: u64) {
    if let Some(table) = table() {
        table.entry(key).waited(began);
    }
}
