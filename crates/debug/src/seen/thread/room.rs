//! What a record has room for: slots outside of it, slots of locks that were dropped, and locks
//! that have no slot.

use super::{Held, MOST, NEAR, Record, indices};
#[cfg(not(modelled))]
use crate::seen::signal::zeroed;
use crate::seen::slot::Slot;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

/// The slots outside of the record. `None` if there is no memory.
#[cfg(not(modelled))]
fn slots() -> Option<*mut [Slot; MOST - NEAR]> {
    // All zero is what `Slot::new` makes.
    Some(zeroed()?.as_ptr())
}

#[cfg(modelled)]
fn slots() -> Option<*mut [Slot; MOST - NEAR]> {
    Some(Box::into_raw(Box::new(core::array::from_fn(|_| Slot::new()))))
}

impl Record {
    #[cold]
    #[inline(never)]
    pub(super) fn far_slot(&self, index: usize) -> &Slot {
        let more = self.more.load(Relaxed);
        assert!(!more.is_null(), "an entry has no slot");
        // SAFETY: slots, which were made before the entry, and are never freed. The calling thread
        // has made them, or has seen the bit of the entry by (publish).
        let more = unsafe { &*more };
        &more[index - NEAR]
    }

    /// The slot of that number, outside of the record. `None` if there is none, or no memory.
    #[cold]
    #[inline(never)]
    pub(super) fn more_slot(&self, index: usize) -> Option<&Slot> {
        if index >= MOST {
            return None;
        }
        if self.more.load(Relaxed).is_null() {
            self.more.store(slots()?, Release); // (more)
        }
        Some(self.far_slot(index))
    }

    /// As [`push`](Self::push), if no slot is free: into that of a lock that was dropped.
    #[cold]
    #[inline(never)]
    pub(super) fn push_swept(&self, held: &Held) -> bool {
        let used = self.used.load(Relaxed);
        self.sweep();
        if self.used.load(Relaxed) == used { self.push_over() } else { self.push(held) }
    }

    #[cold]
    pub(crate) fn push_over(&self) -> bool {
        self.owner_only.over.set(self.owner_only.over.get().saturating_add(1));
        false
    }

    /// Forgets one lock that has no slot. `false` if there is none.
    pub fn pop_over(&self) -> bool {
        let over = self.owner_only.over.get();
        self.owner_only.over.set(over.saturating_sub(1));
        over > 0
    }

    /// Whether locks may name this record as that of their holder, also locks that have no slot.
    pub fn is_named(&self) -> bool {
        self.holds_any() || self.owner_only.over.get() != 0
    }

    /// Another thread, or this one, drops a lock that this thread holds.
    pub fn forget(&self, lock: usize) {
        // SAFETY: null, or slots, which are never freed, and came by (more).
        let more = unsafe { self.more.load(Acquire).as_ref() }; // (more)
        // The bit stays set until the thread needs the slot.
        self.slots.iter().chain(more.into_iter().flatten()).for_each(|slot| slot.forget(lock));
    }

    /// Frees the slots of locks that were dropped.
    #[cold]
    pub fn sweep(&self) {
        for index in indices(self.used.load(Relaxed)) {
            if self.slot(index).lock() == 0 {
                self.clear(self.used.load(Relaxed), index);
            }
        }
    }
}
