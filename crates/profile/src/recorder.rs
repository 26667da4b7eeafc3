//! What the calling thread counts: its table, from its first event while the profile is on to its
//! end.

use crate::sums::{Entry, Key, Table};
use crate::ticks::{now, ticks};
use core::cell::Cell;

std::thread_local! {
    /// The table of this thread, if it has one.
    static MINE: Cell<Option<&'static Table>> = const { Cell::new(None) };
    /// In how many signal handlers the thread is, as far as the checker was told.
    static HANDLERS: Cell<u32> = const { Cell::new(0) };
    /// Only a thread with a table has it.
    static EXIT: Exit = const { Exit };
}

/// Its drop is the end of a thread.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        if let Some(table) = MINE.take() {
            table.give_back();
        }
    }
}

/// The table of this thread, unless the thread is at its end.
#[inline]
fn table() -> Option<&'static Table> {
    MINE.get().or_else(take)
}

#[cold]
fn take() -> Option<&'static Table> {
    EXIT.try_with(|_| ()).ok()?;
    let table = Table::take(std::thread::current().name().unwrap_or(""));
    MINE.set(Some(table));
    Some(table)
}

/// A signal handler begins. Plain locks that it acquires do not count, since that allocates.
pub fn enter_handler() {
    HANDLERS.set(HANDLERS.get() + 1);
}

/// A signal handler ends.
pub fn leave_handler() {
    HANDLERS.set(HANDLERS.get() - 1);
}

/// The thread has acquired the checked lock of `key` in that slot, while the profile is on.
#[inline]
pub fn acquired(slot: usize, key: &Key) {
    if let Some(table) = table() {
        table.begin_hold(slot, key);
    }
}

/// The thread is about to release the checked lock of that slot.
#[inline]
pub fn released(slot: usize) {
    if let Some(table) = MINE.get() {
        table.end_hold(slot);
    }
}

/// The thread has waited for the checked lock of `key` since `began`, by [`now`].
pub fn waited(key: &Key, began: u64) {
    if let Some(table) = table() {
        table.entry(key).waited(began);
    }
}

/// The table, for a plain lock.
fn of_plain() -> Option<&'static Table> {
    if HANDLERS.get() == 0 { table() } else { None }
}

/// The thread has begun to wait for the plain lock at that address, while the profile is on.
pub(crate) fn plain_contended(lock: usize) {
    if let Some(table) = of_plain() {
        table.stamps.begin_wait(lock, now());
    }
}

/// The thread has acquired the plain lock of `key`, while the profile is on. A hold begins if it
/// `holds` the lock, and not permits of it.
pub(crate) fn plain_acquired(key: &Key, holds: bool) {
    let Some(table) = of_plain() else { return };
    let entry: &'static Entry = table.entry(key);
    if let Some(began) = table.stamps.end_wait(key.lock) {
        entry.waited(began);
    }
    let began = ticks();
    entry.acquired(began);
    if holds {
        table.stamps.begin_hold((key.lock, began, entry));
    }
}

/// The thread is about to release the plain lock at that address.
#[inline]
pub(crate) fn plain_released(lock: usize) {
    if let Some(table) = MINE.get()
        && HANDLERS.get() == 0
        && let Some((_, began, entry)) = table.stamps.end_hold(lock)
    {
        entry.released(began);
    }
}

/// The thread waits no longer for the plain lock of `key`, which it does not have.
pub(crate) fn plain_gave_up(key: &Key) {
    if let Some(table) = MINE.get()
        && HANDLERS.get() == 0
        && let Some(began) = table.stamps.end_wait(key.lock)
    {
        table.entry(key).waited(began);
    }
}
