//! A reader-writer lock in memory that processes share: forked children over one mapping.

use super::super::shared::{Mapping, drive};
use super::super::stress::Load;
use super::{Counts, Table};
use crate::new_lock;
use ulocks_core::raw::RawRwLock;

/// Readers and writers of every kind, with deadlines up to 200 us, in a process each.
///
/// # Panics
/// If a child does, and if there are more than 32.
pub fn mixed<L: RawRwLock>(load: Load) -> Counts {
    drive(
        "shared mixed",
        load,
        Table::<L>::new,
        |table| format!("locked {}", table.lock.is_locked()),
        |table, random, hold| table.read_or_write(random, 200_000, hold),
        |table, acquired| Counts::new(table, acquired, 0),
    )
}

/// A lock in fresh zeroed memory, never initialised: law 1 of the family.
pub fn zeroed_is_unlocked<L: RawRwLock>() -> bool {
    let mapping = Mapping::shared();
    let _ = new_lock::<L>();
    // SAFETY: the page is zeroed and large enough; that zeroes are an unlocked lock is what the
    // family promises.
    let lock = unsafe { &*mapping.place::<L>() };
    let Some(token) = lock.try_write() else { return false };
    // SAFETY: acquired above.
    unsafe { lock.unlock_write(token) };
    let Some(token) = lock.try_read() else { return false };
    // SAFETY: acquired above.
    unsafe { lock.unlock_read(token) };
    !lock.is_locked()
}
