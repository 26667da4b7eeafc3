//! The records of signal handlers; `signal/mod.rs` says what they are for.

use super::ThreadIdentity;
use super::{CURRENT, ENDED, Record, existing, records};
use crate::seen::signal::zeroed;
use core::cell::Cell;
use core::{iter, ptr};
use ulocks_core::sync::{AtomicBool, Ordering::Relaxed};

/// Whether the calling code is a signal handler that has said so.
pub(crate) fn is_in_handler() -> bool {
    existing().is_some_and(Record::is_handler)
}

/// Gives this thread another record. `None` has nothing checked. Returns what was there.
pub(crate) fn swap(record: Option<&'static Record>) -> *const Record {
    CURRENT.replace(record.map_or(ENDED, ptr::from_ref))
}

/// Whether this thread has the record that [`swap`] has given it.
pub(crate) fn is_current(record: Option<&'static Record>) -> bool {
    CURRENT.get() == record.map_or(ENDED, ptr::from_ref)
}

/// Gives this thread the record back that [`swap`] has returned.
pub(crate) fn restore(before: *const Record) {
    CURRENT.set(before);
}

impl Record {
    /// A record for a handler of `signal` that has interrupted the thread, or the handler, of the
    /// record `interrupted`.
    pub fn of_handler(signal: u32, interrupted: Option<&'static Self>) -> Option<&'static Self> {
        let record = records().find(|record| record.take()).or_else(Self::in_pages)?;
        record.owner_only.signal.set(signal);
        record.owner_only.interrupted.set(interrupted);
        match interrupted {
            Some(interrupted) => record.identity.copy(&interrupted.identity),
            None => {
                record.identity.copy(&ThreadIdentity::new());
                record.identity.set_tid();
            }
        }
        Some(record)
    }

    /// A new record, made without the allocator and without a copy on the stack, which is small.
    fn in_pages() -> Option<&'static Self> {
        if cfg!(modelled) {
            return Some(Self::leak());
        }
        let place = zeroed::<Self>()?.as_ptr();
        // SAFETY: the place is large enough, aligned, unused, and stays. Its fields are atomics and
        // cells of numbers, of pointers, and of options of references, for which zero is a value.
        // That is not known of `rewait`, which is written.
        let record = unsafe {
            (&raw mut (*place).owner_only.rewait).write(Cell::new(None));
            (&raw mut (*place).taken).write(AtomicBool::new(true));
            &*place
        };
        record.publish();
        Some(record)
    }

    /// The handler has returned, and its thread has got its record back.
    pub fn end_handler(&self) {
        self.owner_only.signal.set(0);
        self.owner_only.interrupted.set(None);
        if self.is_named() {
            // As at the end of a thread: locks name this record as their holder.
            self.used.store(0, Relaxed);
        } else {
            self.give_back();
        }
    }

    /// The signal of this handler; 0 for a thread.
    #[inline(always)]
    pub fn signal(&self) -> u32 {
        self.owner_only.signal.get()
    }

    #[inline]
    pub fn is_handler(&self) -> bool {
        self.signal() != 0
    }

    /// What this handler has interrupted: the thread, or a handler first.
    pub fn interrupted(&self) -> impl Iterator<Item = &'static Self> {
        iter::successors(self.owner_only.interrupted.get(), |record| record.owner_only.interrupted.get())
    }
}
