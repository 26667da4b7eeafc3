//! The protocol of an array: words, the array lock, the journal.
//!
//! # Properties
//! - A set of operations is performed whole or not at all, also if its process is killed.
//! - After each change, no sleeping set can proceed.
//! - A single operation on a plain word takes one compare-and-exchange, and no lock.
//!
//! # State
//! A [word](crate::word) has a value, a process, and flags:
//!
//! | flag | set by | cleared by |
//! |---|---|---|
//! | `BUSY` | the holder of the array lock, before it reads a value to change it | the same, after the change |
//! | `WATCHED` | the holder, when the watch count becomes greater than 0 | the holder, when it becomes 0 |
//! | `REMOVED` | the holder that removes the array | no thread |
//!
//! A word without flags is *plain*. Any thread changes it by one exchange. With a flag, only the
//! holder of the array lock changes it.
//!
//! The *watch count* of a semaphore is the number of operations of sleepers that name it, and of
//! processes with an adjustment for it.
//!
//! A change of several words, or of a word and an adjustment, goes through the *journal*:
//!
//! | transition | label |
//! |---|---|
//! | the entries and the fields written, while the state is 0 | (write journal) |
//! | the state set to the number of entries and 1 | (commit) |
//! | values, adjustments, the status of a sleeper written | (apply) |
//! | the state cleared | (clear journal) |
//!
//! # Invariants
//! 1. If the state is not 0 when a thread gets the lock, the last holder has died between (commit)
//!    and (clear journal). The thread makes (apply) again, which stores absolute values.
//! 2. Flags, watch counts, and the order of the queue can be derived from the words, the rows, and
//!    the sleepers. A thread that gets the lock from a dead holder derives them anew.
//! 3. Words named by a sleeper, and words with an adjustment, are watched. So no operation passes a
//!    sleeper by, and none uses what a dead process owes.
//! 4. While the lock is free, evaluating a sleeper gives that it blocks: each change of a watched
//!    word is followed by [`settle`](Section::settle) under the same lock. If the holder dies
//!    between the two, the next one makes it. A sleeper comes for that if it finds the lock so.
//! 5. A thread that is about to change the word of a plain semaphore has made it busy first. So an
//!    exchange of another thread comes before the evaluation, or fails.
//! 6. A word that the journal names has a flag until (clear journal), also if (apply) ends its last
//!    watch: it is busy, or the completed sleeper names it. So no exchange comes between (apply)
//!    and the same again.
//! 7. An array that is marked as removed has sleepers only until its remover has ended them. If the
//!    remover dies before, the next thread that gets the lock ends them. A sleeper that finds the
//!    mark comes for the lock itself.
//!
//! # Ordering
//! A word is stored by the holder of the array lock alone, with Release. Before, the holder loads
//! it, with Acquire. All else that changes it are exchanges. Those of single operations are AcqRel.
//! Those of flags carry on what was released before, so they are `Relaxed`. The array lock orders
//! the rest. A death is between two instructions of one thread: it sees (write journal) to (clear
//! journal) in program order, which the compiler must keep. So the steps of the journal are
//! `Relaxed`, between fences of the compiler.
//!
//! # Sources
//! ipc/sem.c in the kernel, for what is promised. The journal and the flags are this project's.

use crate::array::Array;
use crate::layout::{MAGIC, NONE};
use crate::lock::{Held, Thread};
use crate::op::{Change, Ops};
use crate::queue::{self, Status};
use crate::sys::{self, Answer};
use crate::undo;
use crate::word::Word;
use ulocks_core::sync::Ordering::{Relaxed, Release, SeqCst};
use ulocks_core::sync::compiler_fence;

/// How many groups of sleepers are remembered until the lock is released. Others are woken at once.
const WAKES: usize = 16;

/// An array whose lock the calling thread holds.
#[derive(Debug)]
pub struct Section {
    /// The array.
    pub array: &'static Array,
    held: Held<'static>,
    /// Groups of sleepers, and which sleepers of each.
    wakes: [(u32, u32); WAKES],
    woken: usize,
}

/// Who is noted as the last process, and whose adjustments change.
#[derive(Clone, Copy, Debug)]
pub struct Actor {
    /// The process.
    pub process: u32,
    /// Its row.
    pub row: Option<usize>,
    /// The slot of the sleeper that is completed.
    pub slot: Option<usize>,
    /// Whether the values are set, and all adjustments for them cleared.
    pub sets: bool,
}

impl Section {
    /// Acquires the lock, and repairs what dead processes have left.
    ///
    /// # Errors
    /// EINVAL if the array is removed; EIO if its file was truncated; EDEADLK if the thread holds
    /// it.
    pub fn enter(array: &'static Array) -> Answer<Self> {
        array.hold()?;
        Self::enter_held(array)
    }

    /// As [`enter`](Self::enter), for a thread with a hold on the array, which passes to the
    /// section.
    ///
    /// # Errors
    /// EINVAL if the array is removed; EIO if its file was truncated; EDEADLK if the thread holds
    /// it.
    pub fn enter_held(array: &'static Array) -> Answer<Self> {
        let held = array.head().lock.lock(Thread::new()).inspect_err(|_| array.let_go())?;
        let mut section = Self { array, held, wakes: [(0, 0); WAKES], woken: 0 };
        if section.held.died {
            section.recover();
        }
        if array.is_gone() {
            section.leave();
            let error = array.why_gone();
            array.forget();
            return Err(error);
        }
        undo::reap(&mut section);
        Ok(section)
    }

    /// The kernel's number of the calling thread.
    pub fn thread(&self) -> u32 {
        self.held.thread.number()
    }

    /// Releases the lock, then wakes the sleepers that were completed.
    pub fn leave(self) {
        drop(self.release());
    }

    /// As [`leave`](Self::leave), but handlers still wait.
    pub fn release(self) -> Thread {
        let Self { array, held, wakes, woken } = self;
        let thread = held.unlock();
        wakes[..woken].iter().for_each(|&(group, sleepers)| queue::ring(array, group, sleepers));
        array.let_go();
        thread
    }

    /// Notes that the sleeper in `slot` is to be woken.
    pub fn will_wake(&mut self, slot: usize) {
        let (group, bit) = queue::bell(slot);
        let mut noted = self.wakes[..self.woken].iter_mut();
        if let Some((_, sleepers)) = noted.find(|noted| noted.0 == group) {
            *sleepers |= bit;
        } else if let Some(place) = self.wakes.get_mut(self.woken) {
            *place = (group, bit);
            self.woken += 1;
        } else {
            queue::ring(self.array, group, bit);
        }
    }

    /// Makes the words of `ops` busy. Whether one of them was watched.
    pub fn mark(&self, ops: Ops<'_>) -> bool {
        ops.iter(self.array).fold(false, |watched, op| watched | self.mark_one(u32::from(op.num)))
    }

    /// Makes one word busy. Whether it was watched.
    pub fn mark_one(&self, num: u32) -> bool {
        let Some(word) = self.array.word(num) else { return false };
        let seen = self.array.load(num);
        if seen.is_plain() {
            return Word(word.fetch_or(Word::BUSY, Relaxed)).has(Word::WATCHED);
        }
        self.array.store(num, Word(seen.0 | Word::BUSY));
        seen.has(Word::WATCHED)
    }

    /// Makes the words of `ops` free again.
    pub fn unmark(&self, ops: Ops<'_>) {
        ops.iter(self.array).for_each(|op| self.unmark_one(u32::from(op.num)));
    }

    /// Makes one word free again.
    pub fn unmark_one(&self, num: u32) {
        let seen = self.array.load(num);
        if seen.has(Word::BUSY) {
            self.array.store(num, Word(seen.0 & !Word::BUSY));
        }
    }

    /// Makes all words busy, or free again.
    pub fn mark_all(&self, busy: bool) {
        for num in 0..self.array.nsems {
            if busy {
                self.mark_one(num);
            } else {
                self.unmark_one(num);
            }
        }
    }

    /// Changes the watch count of a semaphore whose word is busy or watched.
    pub fn watch(&self, num: u32, more: bool) {
        let Some(count) = self.array.watch(num) else { return };
        let before = count.load(Relaxed);
        let now = if more { before.saturating_add(1) } else { before.saturating_sub(1) };
        count.store(now, Relaxed);
        if (before == 0) != (now == 0) {
            let word = self.array.load(num);
            let flags = if now == 0 { word.0 & !Word::WATCHED } else { word.0 | Word::WATCHED };
            self.array.store(num, Word(flags));
        }
    }

    /// (commit), (apply) and (clear journal), of the first `entries` of the journal.
    pub fn commit(&self, entries: usize, actor: Actor) {
        let journal = &self.array.head().journal;
        let place = |index: Option<usize>| index.map_or(NONE, |index| index as u32);
        journal.row.store(place(actor.row), Relaxed);
        journal.process.store(actor.process, Relaxed);
        journal.slot.store(place(actor.slot), Relaxed);
        journal.sets.store(actor.sets.into(), Relaxed);
        compiler_fence(SeqCst);
        journal.state.store(entries as u32 + 1, Relaxed); // (commit)
        self.complete();
    }

    /// (apply) and (clear journal), of what the journal says.
    fn complete(&self) {
        compiler_fence(SeqCst);
        let (array, journal) = (self.array, &self.array.head().journal);
        let entries = journal.state.load(Relaxed).saturating_sub(1) as usize;
        let process = journal.process.load(Relaxed);
        let row = Some(journal.row.load(Relaxed)).filter(|&row| row != NONE);
        let sets = journal.sets.load(Relaxed) != 0;
        for change in (0..entries).map_while(|at| array.entry(at)) {
            let change = Change::unpack(change.load(Relaxed));
            let num = u32::from(change.num);
            array.store(num, array.load(num).with(change.value.into(), process));
            if sets {
                array.rows().for_each(|row| self.adjust(row, num, 0));
            } else if let (Some(row), Some(adjustment)) = (row, change.adjustment) {
                self.adjust(row as usize, num, adjustment);
            }
        }
        if let Some(sleeper) = array.sleeper(journal.slot.load(Relaxed) as usize) {
            sleeper.status.store(Status::DONE, Release);
        }
        compiler_fence(SeqCst);
        journal.state.store(0, Relaxed); // (clear journal)
        compiler_fence(SeqCst); // Before the next (write journal).
    }

    /// Sets an adjustment.
    fn adjust(&self, row: usize, num: u32, adjustment: i16) {
        let Some(place) = self.array.adjustment(row, num) else { return };
        let before = place.load(Relaxed);
        let after = u32::from(adjustment as u16);
        if before != after {
            place.store(after, Relaxed);
            if (before == 0) != (adjustment == 0) {
                self.watch(num, adjustment != 0);
            }
        }
    }

    /// Notes when an operation was performed.
    pub fn touch(&self) {
        self.array.head().otime.store(sys::seconds(), Relaxed);
    }

    /// Invariants 1 and 2, after the last holder's death.
    #[cold]
    fn recover(&mut self) {
        let array = self.array;
        if array.head().magic.load(Relaxed) != MAGIC || array.is_lost() {
            return;
        }
        if array.head().journal.state.load(Relaxed) != 0 {
            self.complete();
        }
        for num in 0..array.nsems {
            if let Some(count) = array.watch(num) {
                count.store(0, Relaxed);
            }
        }
        for row in array.rows() {
            for num in 0..array.nsems {
                let adjustment = array.adjustment(row, num).map_or(0, |place| place.load(Relaxed));
                if let Some(count) = array.watch(num).filter(|_| adjustment != 0) {
                    count.store(count.load(Relaxed) + 1, Relaxed);
                }
            }
        }
        queue::rebuild(self);
        for num in 0..array.nsems {
            let is_watched = array.watch(num).is_some_and(|count| count.load(Relaxed) != 0);
            if let Some(word) = array.word(num) {
                if is_watched {
                    word.fetch_or(Word::WATCHED, Relaxed);
                    word.fetch_and(!Word::BUSY, Relaxed);
                } else {
                    word.fetch_and(!(Word::BUSY | Word::WATCHED), Relaxed);
                }
            }
        }
        if array.head().removed.load(Relaxed) != 0 {
            self.end();
        } else {
            self.settle(None);
        }
    }

    /// Completes all sleepers of a removed array, and forgets all adjustments.
    pub fn end(&mut self) {
        self.array.head().removed.store(1, Release);
        compiler_fence(SeqCst); // Invariant 7, at a death.
        for num in 0..self.array.nsems {
            if let Some(word) = self.array.word(num) {
                word.fetch_or(Word::REMOVED, Relaxed);
            }
        }
        queue::fail_all(self, libc::EIDRM);
        undo::discard_all(self.array);
    }
}
