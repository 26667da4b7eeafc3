//! [`RawRwLock`]: readers and a writer on a `Queue`, each of them named by its slot.
//!
//! # Properties
//! - A writer is alone. What a holder did happens before the next acquisition that excludes it.
//! - An urgent reader passes all waiters that are not urgent readers. Writers and bulk readers are
//!   granted in the order of their arrival; bulk readers that follow one another, together.
//! - What the queue promises for deaths. If a writer died in its critical
//!   section, the lock is dirty until a writer says otherwise. The death of a reader leaves no
//!   trace.
//!
//! # State
//! All words change under the queue lock, except for (leave).
//!
//! | word | meaning |
//! |---|---|
//! | `writer` | the holder that writes, or 0; with `CLEAN`, it is outside of its critical section |
//! | `readers[slot]` | the thread of the slot, if it reads, or 0 |
//! | `reading` | how many of these are not 0 |
//! | `health` | whether the data is consistent |
//!
//! | transition | by | label |
//! |---|---|---|
//! | `readers[slot]` set, then `reading` increased | a thread that grants a read | (note reader) |
//! | `writer` set | a thread that grants a write: there is no reader and no writer | (note writer) |
//! | `CLEAN` set | the writer, before it takes the queue lock to release | (leave) |
//! | `writer` cleared; `readers[slot]` cleared, then `reading` decreased | its holder | (forget) |
//! | the same; `health` is dirty first if it was a writer without `CLEAN` | a thread that finds the holder dead | (bury) |
//!
//! # Invariants
//! 1. If `writer` is not 0, no reader's word is, but between the two stores of a downgrade. The
//!    thread that makes it is both.
//! 2. `reading` is the number of readers, unless a thread died with the queue lock: then the next
//!    thread counts again (`repair`).
//!
//! # Ordering
//! The queue lock orders all of it. (leave) releases, so that the compiler leaves it behind the
//! data: the data of a dead writer with `CLEAN` is whole for the thread that acquires its death.

use crate::robust::health;
use crate::robust::mutex::Refused;
use crate::robust::queue::{Patience, Queue, Rule};
use crate::slots::{Member, Owner};
use core::array;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::{Policy, Shared, futex};

const NO_OWNER: u32 = 0;
pub(crate) const CLEAN: u32 = 1 << 28;

/// What a thread asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To write.
    Write,
    /// To read, behind the writers that came before.
    Bulk,
    /// To read, before all waiting writers.
    Urgent,
}

impl Want {
    fn of(want: u32) -> Self {
        match want {
            0 => Self::Write,
            1 => Self::Bulk,
            _ => Self::Urgent,
        }
    }
}

/// The raw lock, for threads in the first `SLOTS` slots of a region: 32 bytes, and 4 for each slot;
/// all zero is unlocked.
#[derive(Debug)]
#[repr(C)]
pub struct RawRwLock<P: Policy<Scope = futex::Global> = Shared, const SLOTS: usize = 64> {
    writer: AtomicU32,
    reading: AtomicU32,
    pub(super) health: AtomicU32,
    reserved: AtomicU32,
    queue: Queue<P>,
    readers: [AtomicU32; SLOTS],
}

impl<P: Policy<Scope = futex::Global>, const SLOTS: usize> RawRwLock<P, SLOTS> {
    /// An unlocked lock; its bytes are all zero.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let word = || AtomicU32::new(0);
        let readers = array::from_fn(|_| word());
        Self {
            writer: word(),
            reading: word(),
            health: word(),
            reserved: word(),
            queue: Queue::new(),
            readers,
        }
    }

    /// Acquires what `want` says, until `patience` is over.
    ///
    /// # Safety
    /// All threads that use this lock are members of one table of slots.
    pub(super) unsafe fn acquire(
        &self,
        me: &Member<'_>,
        want: Want,
        patience: Patience,
    ) -> Result<(), Refused> {
        me.check_process();
        if me.slot() >= SLOTS {
            return Err(Refused::NoRoom { slot: me.slot(), room: SLOTS });
        }
        if self.is_reader(me) || self.is_writer(me) {
            return Err(Refused::Deadlock);
        }
        self.queue.acquire(me, want as u32, self, patience)?;
        me.count(1);
        Ok(())
    }

    /// (forget) of a reader.
    ///
    /// # Safety
    /// `me` reads.
    pub(super) unsafe fn unlock_read(&self, me: &Member<'_>) {
        me.check_process();
        // If the queue is corrupt, no thread can acquire any more.
        if let Ok(how) = self.queue.take(me) {
            let mut section = self.queue.section(me, self, how);
            self.forget_reader(me.owner());
            if self.reading.load(Relaxed) == 0 {
                section.pass_on();
            }
        }
        me.count(-1);
    }

    /// (leave), and (forget) of the writer.
    ///
    /// # Safety
    /// `me` writes.
    pub(super) unsafe fn unlock_write(&self, me: &Member<'_>) {
        me.check_process();
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        self.writer.fetch_or(CLEAN, Release); // (leave)
        if let Ok(how) = self.queue.take(me) {
            let mut section = self.queue.section(me, self, how);
            self.writer.store(NO_OWNER, Relaxed);
            section.pass_on();
        }
        me.count(-1);
    }

    /// Lets the writer read, and readers with it.
    ///
    /// # Safety
    /// `me` writes.
    pub(super) unsafe fn downgrade(&self, me: &Member<'_>) {
        me.check_process();
        // Mutant: Release -> Relaxed: as in `unlock_write`.
        self.writer.fetch_or(CLEAN, Release); // (leave)
        if let Ok(how) = self.queue.take(me) {
            let mut section = self.queue.section(me, self, how);
            self.note_reader(me.owner());
            self.writer.store(NO_OWNER, Relaxed);
            section.pass_on();
        }
    }

    /// How many threads wait, at the moment of the look.
    #[must_use]
    pub fn waiters(&self, me: &Member<'_>) -> usize {
        self.queue.waiters(me)
    }

    /// Whether a thread has the lock, living or dead.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.writer.load(Relaxed) != NO_OWNER || self.reading.load(Relaxed) != 0
    }

    /// Unlocks it, if no thread uses it. If a writer was in its critical section, it is dirty.
    #[cfg(regions)]
    pub(super) fn reset(&self) {
        let writer = self.writer.load(Relaxed);
        if writer != NO_OWNER && writer & CLEAN == 0 {
            self.soil();
        }
        // A process that dies in between leaves the writer to the next reset.
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        self.writer.store(NO_OWNER, Release);
        self.reading.store(0, Relaxed);
        self.readers.iter().for_each(|reader| reader.store(NO_OWNER, Relaxed));
        self.queue.reset();
    }

    fn soil(&self) {
        let (clean, dirty) = (health::CONSISTENT, health::DIRTY);
        let _ = self.health.compare_exchange(clean, dirty, Relaxed, Relaxed);
    }

    pub(super) fn is_reader(&self, me: &Member<'_>) -> bool {
        self.reader(me.slot()) == Some(me.owner())
    }

    pub(super) fn is_writer(&self, me: &Member<'_>) -> bool {
        self.writer() == Some(me.owner())
    }

    fn writer(&self) -> Option<Owner> {
        Owner::of(self.writer.load(Relaxed))
    }

    /// The thread of `slot`, if it reads.
    fn reader(&self, slot: usize) -> Option<Owner> {
        let owner = Owner::of(self.readers.get(slot)?.load(Relaxed));
        owner.filter(|owner| owner.slot() == slot)
    }

    fn readers(&self) -> impl Iterator<Item = Owner> {
        (0..SLOTS).filter_map(|slot| self.reader(slot))
    }

    /// (note reader).
    fn note_reader(&self, owner: Owner) -> bool {
        let Some(word) = self.readers.get(owner.slot()) else { return false };
        match self.reader(owner.slot()) {
            Some(other) if other == owner => return true,
            Some(gone) => self.forget_reader(gone), // The thread that had the slot before.
            None => {}
        }
        word.store(owner.bits(), Relaxed);
        self.reading.store(self.reading.load(Relaxed).wrapping_add(1), Relaxed);
        true
    }

    fn forget_reader(&self, owner: Owner) {
        if self.reader(owner.slot()) == Some(owner) {
            self.readers[owner.slot()].store(NO_OWNER, Relaxed);
            self.reading.store(self.reading.load(Relaxed).wrapping_sub(1), Relaxed);
        }
    }
}

impl<P: Policy<Scope = futex::Global>, const SLOTS: usize> Rule for RawRwLock<P, SLOTS> {
    fn rank(&self, want: u32) -> u8 {
        u8::from(Want::of(want) != Want::Urgent)
    }

    /// (note reader) or (note writer).
    fn grant(&self, owner: Owner, want: u32) -> bool {
        let writer = self.writer.load(Relaxed);
        match Want::of(want) {
            Want::Write if writer == NO_OWNER && self.reading.load(Relaxed) == 0 => {
                self.writer.store(owner.bits(), Relaxed);
                true
            }
            Want::Write => writer == owner.bits(),
            Want::Bulk | Want::Urgent => writer == NO_OWNER && self.note_reader(owner),
        }
    }

    fn holders(&self, each: &mut dyn FnMut(Owner)) {
        self.writer().into_iter().for_each(&mut *each);
        if self.reading.load(Relaxed) != 0 {
            self.readers().for_each(each);
        }
    }

    fn is_held_only_by(&self, owner: Owner) -> bool {
        match self.writer.load(Relaxed) {
            NO_OWNER => self.reading.load(Relaxed) == 1 && self.reader(owner.slot()) == Some(owner),
            writer => Owner::of(writer) == Some(owner),
        }
    }

    fn corrupt(&self) -> Option<u32> {
        let writer = self.writer.load(Relaxed);
        if writer != NO_OWNER {
            return Some(writer).filter(|_| self.writer().is_none());
        }
        Some(self.reading.load(Relaxed)).filter(|reading| *reading as usize != self.readers().count())
    }

    /// (bury).
    fn reap(&self, gone: Owner) {
        let writer = self.writer.load(Relaxed);
        if Owner::of(writer) == Some(gone) {
            if writer & CLEAN == 0 {
                self.soil();
            }
            self.writer.store(NO_OWNER, Relaxed);
        }
        self.forget_reader(gone);
    }

    fn repair(&self) {
        self.reading.store(self.readers().count() as u32, Relaxed);
    }
}

#[cfg(all(test, regions, not(miri)))]
mod tests {
    use super::*;
    use crate::slots::Slot;

    /// What a writer finds after a thread that left `writer` or a reader's word behind.
    fn found(writes: bool, flags: u32) -> u32 {
        let (slots, lock) = ([Slot::new(), Slot::new()], RawRwLock::<Shared, 2>::new());
        // SAFETY: the slots outlive both members.
        let gone = unsafe { Member::join(&slots, 0..0) }.unwrap();
        if writes {
            lock.writer.store(gone.owner().bits() | flags, Relaxed);
        } else {
            assert!(lock.note_reader(gone.owner()));
        }
        drop(gone);
        // SAFETY: as above.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        // SAFETY: all members are of one table.
        unsafe { lock.acquire(&me, Want::Write, Patience::Never) }.unwrap();
        // SAFETY: acquired above.
        unsafe { lock.unlock_write(&me) };
        assert!(!lock.is_locked());
        lock.health.load(Relaxed)
    }

    #[test]
    fn only_a_death_of_a_writer_in_its_critical_section_is_told() {
        assert_eq!(found(true, 0), health::DIRTY);
        assert_eq!(found(true, CLEAN), health::CONSISTENT);
        assert_eq!(found(false, 0), health::CONSISTENT);
    }

    #[test]
    fn what_the_lock_refuses() {
        let (slots, lock) = ([Slot::new(), Slot::new()], RawRwLock::<Shared, 1>::new());
        // SAFETY: the slots outlive both members.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        // SAFETY: as above.
        let other = unsafe { Member::join(&slots, 0..0) }.unwrap();
        let acquire = |who, want| {
            // SAFETY: all members are of one table.
            unsafe { lock.acquire(who, want, Patience::Never) }
        };
        assert_eq!(acquire(&other, Want::Bulk), Err(Refused::NoRoom { slot: 1, room: 1 }));
        for first in [Want::Write, Want::Bulk] {
            assert_eq!(acquire(&me, first), Ok(()));
            for second in [Want::Write, Want::Bulk, Want::Urgent] {
                assert_eq!(acquire(&me, second), Err(Refused::Deadlock));
            }
            // SAFETY: acquired above.
            unsafe { if first == Want::Write { lock.unlock_write(&me) } else { lock.unlock_read(&me) } };
        }
        let corrupt = |word, want| {
            // SAFETY: all members are of one table.
            let refused = unsafe { lock.acquire(&me, want, Patience::Forever) };
            assert_eq!(refused, Err(Refused::Corrupt(word)), "{want:?}");
        };
        for word in [Owner::OWNED | 4_000, Owner::OWNED | 7, 1, CLEAN] {
            lock.writer.store(word, Relaxed);
            corrupt(word, Want::Bulk);
            corrupt(word, Want::Write);
        }
        lock.writer.store(NO_OWNER, Relaxed);
        lock.reading.store(7, Relaxed);
        corrupt(7, Want::Write);
    }
}
