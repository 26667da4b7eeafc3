//! An entry of a thread's list of held locks. The thread writes it, and any thread reads it.
//!
//! # Writing and reading
//! The thread counts `turn` up (T), writes the fields behind a fence (U), and then the address (S).
//! At the release it clears the address. Another thread reads `turn` (T), the address (S), the
//! fields, and behind a fence (U) `turn` again.
//!
//! - If it reads a field of a later entry, the fences (U) show it the later `turn`. It gives up.
//! - If it reads the later `turn` at first, (T) shows it that the address before was cleared. So it
//!   finds no address, or by (S) the later entry.
//!
//! So what it reads is one entry. A lock that is held all the time is always found.

use crate::access::Access;
use crate::class::Node;
use crate::report::{LockName, Place};
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use ulocks_core::sync::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// A held lock, or none.
pub(crate) struct Slot {
    /// The address of the lock; 0 if there is none.
    lock: AtomicUsize,
    class: AtomicPtr<Node>,
    place: AtomicPtr<Location<'static>>,
    instance: AtomicU64,
    since: AtomicU64,
    /// The subclass in the low byte, the access above.
    how: AtomicU32,
    /// How many entries were written here, modulo 2^32.
    turn: AtomicU32,
}

/// A held lock, read from its slot.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub lock: usize,
    pub class: &'static Node,
    pub subclass: u8,
    pub access: Access,
    pub instance: u64,
    pub place: Place,
    /// In nanoseconds, by the coarse clock, or by that of the profile; then bit 0 is set.
    pub since: u64,
}

impl Held {
    pub fn name(&self) -> LockName {
        self.class.lock_name(self.lock, self.subclass, self.access)
    }
}

/// A subclass and an access in one word.
pub(crate) const fn how(subclass: u8, access: Access) -> u32 {
    subclass as u32 | access.code() << 8
}

impl Slot {
    pub fn new() -> Self {
        Self {
            lock: AtomicUsize::new(0),
            class: AtomicPtr::new(ptr::null_mut()),
            place: AtomicPtr::new(ptr::null_mut()),
            instance: AtomicU64::new(0),
            since: AtomicU64::new(0),
            how: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// Writes an entry. The slot has none, and belongs to the calling thread.
    #[inline]
    pub fn write(&self, held: &Held) {
        self.turn.store(self.turn.load(Relaxed).wrapping_add(1), Release); // (T)
        fence(Release); // (U)
        self.class.store(ptr::from_ref(held.class).cast_mut(), Relaxed);
        self.place.store(ptr::from_ref(held.place).cast_mut(), Relaxed);
        self.instance.store(held.instance, Relaxed);
        self.since.store(held.since, Relaxed);
        self.how.store(how(held.subclass, held.access), Relaxed);
        self.lock.store(held.lock, Release); // (S)
    }

    /// The entry, if there is one and it is not written anew meanwhile.
    pub fn read(&self) -> Option<Held> {
        let turn = self.turn.load(Acquire); // (T)
        let lock = self.lock.load(Acquire); // (S)
        if lock == 0 {
            return None;
        }
        let (class, place) = (self.class.load(Relaxed), self.place.load(Relaxed));
        // SAFETY: a slot with an address has been written, with references that are `'static`. (S)
        // shows those of that entry or of a later one, never the null pointers before the first.
        let (class, place) = unsafe { (&*class, &*place) };
        let how = self.how.load(Relaxed);
        let (instance, since) = (self.instance.load(Relaxed), self.since.load(Relaxed));
        fence(Acquire); // (U)
        let same = self.turn.load(Relaxed) == turn;
        let (subclass, access) = (how as u8, Access::from_code(how >> 8));
        same.then_some(Held { lock, class, subclass, access, instance, place, since })
    }

    /// The address of the lock; 0 if there is none.
    #[inline]
    pub fn lock(&self) -> usize {
        self.lock.load(Relaxed)
    }

    /// The time of the entry. The slot was written by the calling thread.
    #[inline]
    pub fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// The access. The slot was written by the calling thread.
    #[inline]
    pub fn access(&self) -> Access {
        Access::from_code(self.how.load(Relaxed) >> 8)
    }

    /// The hash of the class, the subclass and the access. The slot was written by the calling
    /// thread.
    #[inline]
    pub fn class_hash(&self) -> u64 {
        // SAFETY: the slot has been written by this thread, with a reference that is `'static`.
        let class = unsafe { &*self.class.load(Relaxed) };
        class.hash(self.how.load(Relaxed) as u8, self.access())
    }

    /// There is no entry from now on.
    #[inline]
    pub fn clear(&self) {
        self.lock.store(0, Release);
    }

    /// There is no entry of `lock` from now on: it is dropped.
    pub fn forget(&self, lock: usize) {
        // If it is not here, nothing is to be done.
        let _ = self.lock.compare_exchange(lock, 0, Relaxed, Relaxed);
    }
}
