//! An entry of a thread's list of held locks. The thread writes it, and any thread reads it.
//!
//! # Writing and reading
//! A record has a word `used` with a bit for each entry; a set bit says that there is one. To enter
//! a lock, the thread counts `turn` up (begin), writes the fields behind a fence, (fence), and then
//! sets the bit (publish). To remove it, the thread clears the bit. Another thread reads `turn`,
//! the bit, the fields, and behind a fence `turn` again. Its loads and its fence have the names of
//! the steps that they pair with.
//!
//! - If it reads a field of a later entry, the fences show it the later `turn`. It gives up.
//! - If it reads the later `turn` at first, (begin) shows it that the bit was cleared. So it finds
//!   no bit, or by (publish) the later entry.
//!
//! So what it reads is one entry. A lock that is held all the time is always found.
//!
//! What is written into an entry is a word each: six stores enter a lock and one removes it. They
//! have to leave the CPU before the lock itself is released. So the sum of what a thread
//! holds is written for two locks and more only.

use crate::seen::access::Access;
use crate::seen::class::{Node, node};
use crate::seen::report::{LockName, Place};
use core::cell::Cell;
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{AtomicPtr, AtomicU64, AtomicUsize};
use ulocks_core::sync::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// How far `turn` is counted up: the bits below are the subclass and the access.
const TURN: u64 = 1 << 8;

/// A held lock, or what is left of one.
#[repr(C)]
pub(crate) struct Slot {
    /// How many entries were written here, in steps of [`TURN`], and below that the subclass and
    /// the access of the last one.
    turn: AtomicU64,
    /// The address of the lock; 0 if it was dropped.
    lock: AtomicUsize,
    which: Which,
    place: AtomicPtr<Location<'static>>,
    since: AtomicU64,
    /// The sum of the hashes of this entry and of those in lower slots, if there are any. For the
    /// thread itself.
    pub sum: Cell<u64>,
}

/// The number of the class and that of a lock, in one word, as the lock has them.
struct Which(AtomicU64);

/// The bits of a class.
const CLASS: u32 = 24;

impl Which {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline(always)]
    fn store(&self, class: &'static Node, instance: u64) {
        self.0.store(instance << CLASS | u64::from(class.id()), Relaxed);
    }

    /// The class and the number. The slot has had an entry, which the calling thread has seen.
    #[inline(always)]
    fn load(&self) -> (&'static Node, u64) {
        Self::of(self.word())
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// What [`word`](Self::word) has returned, of an entry that the calling thread has seen.
    #[inline(always)]
    fn of(word: u64) -> (&'static Node, u64) {
        (node(word as usize % (1 << CLASS)), word >> CLASS)
    }
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
        self.class.lock_name((self.lock, self.instance), self.subclass, self.access)
    }

    /// The vertex in the graph of the order.
    #[inline]
    pub fn vertex(&self) -> u64 {
        self.class.vertex(self.subclass, self.instance)
    }
}

/// A subclass and an access in one byte.
#[inline]
pub(crate) const fn how(subclass: u8, access: Access) -> u8 {
    subclass | (access.code() as u8) << 4
}

/// What [`how`] has put together.
#[inline]
pub(crate) const fn subclass_and_access(how: u8) -> (u8, Access) {
    (how % 16, Access::from_code(how as u32 / 16))
}

impl Slot {
    pub fn new() -> Self {
        Self {
            turn: AtomicU64::new(0),
            lock: AtomicUsize::new(0),
            which: Which::new(),
            place: AtomicPtr::new(ptr::null_mut()),
            since: AtomicU64::new(0),
            sum: Cell::new(0),
        }
    }

    /// Writes an entry. The bit of the slot is clear, and the caller sets it afterwards
    /// (publish).
    #[inline(always)]
    pub fn write(&self, held: &Held) {
        let turn = (self.turn.load(Relaxed) & !(TURN - 1)).wrapping_add(TURN);
        self.turn.store(turn | u64::from(how(held.subclass, held.access)), Release); // (begin)
        fence(Release); // (fence)
        self.which.store(held.class, held.instance);
        self.place.store(ptr::from_ref(held.place).cast_mut(), Relaxed);
        self.since.store(held.since, Relaxed);
        self.lock.store(held.lock, Relaxed);
    }

    /// The entry, if there is one and it is not written anew meanwhile. Its bit of `used` is `bit`.
    pub fn read(&self, used: &AtomicU64, bit: u64) -> Option<Held> {
        let turn = self.turn.load(Acquire); // (begin)
        if used.load(Acquire) & bit == 0 {
            return None; // (publish)
        }
        let (which, place) = (self.which.word(), self.place.load(Relaxed));
        // SAFETY: a slot with a bit has been written, with a reference that is `'static`. (publish)
        // shows that of this entry or of a later one, never the null pointer before the first.
        let place = unsafe { &*place };
        let (lock, how) = (self.lock.load(Relaxed), (turn % TURN) as u8);
        let since = self.since.load(Relaxed);
        fence(Acquire); // (fence)
        let is_one = lock != 0 && self.turn.load(Relaxed) == turn;
        is_one.then(|| {
            // Not before: this thread may not have seen the class of a later entry.
            let (class, instance) = Which::of(which);
            let (subclass, access) = subclass_and_access(how);
            Held { lock, class, subclass, access, instance, place, since }
        })
    }

    /// The address of the lock of the last entry; 0 if the lock was dropped.
    #[inline]
    pub fn lock(&self) -> usize {
        self.lock.load(Relaxed)
    }

    /// Which entry it is. It grows with each. The calling thread has seen one.
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    /// The time of the entry. The slot was written by the calling thread.
    #[inline]
    pub fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// Whether a part of the checker wants to know of the entry. The slot was written by the
    /// calling thread.
    #[cfg(checking)]
    #[inline(always)]
    pub fn is_noted(&self) -> bool {
        crate::rules::clock::is_noted(self.since())
    }

    /// The access. The slot was written by the calling thread.
    #[inline]
    pub fn access(&self) -> Access {
        subclass_and_access((self.turn.load(Relaxed) % TURN) as u8).1
    }

    /// Whether it is the entry of a mutex at the address `lock`. The slot was written by the
    /// calling thread.
    #[inline(always)]
    pub fn is_mutex(&self, lock: usize) -> bool {
        self.lock() == lock && self.turn.load(Relaxed) % TURN / 16 == u64::from(Access::Exclusive.code())
    }

    /// Whether the lock is one of `class`. The slot was written by the calling thread.
    #[inline]
    pub fn is_of(&self, class: &Node) -> bool {
        ptr::eq(self.which.load().0, class)
    }

    /// The hash of the vertex and the access. The slot was written by the calling thread.
    #[inline]
    pub fn hash(&self) -> u64 {
        let ((class, instance), how) = (self.which.load(), self.turn.load(Relaxed) % TURN);
        class.hash((how as u8 % 16, how as u32 / 16), instance)
    }

    /// There is no entry of `lock` from now on: it is dropped.
    pub fn forget(&self, lock: usize) {
        // If it is not here, nothing is to be done.
        let _ = self.lock.compare_exchange(lock, 0, Relaxed, Relaxed);
    }
}
