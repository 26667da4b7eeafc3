//! A reader-writer lock in memory that processes share: forked children over one mapping.

use super::super::shared::drive;
use super::super::stress::Load;
use super::{Counts, Table};
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
