//! The process's view of an array: its file, opened and mapped once.
//!
//! A table leads from an index to the array that the process has mapped there. An entry changes
//! from none to an array, and back when the array is found removed, or to the next array of that
//! index. The mapping of a removed array is made blank, and stays: a thread that still looks at it
//! sees all-zero memory, and that it is gone. What it posts comes to nothing, as if that had been
//! done just before the removal. A value that it finds is none of the array: it is told of the
//! removal.
//!
//! # State
//! The word `users` has the number of threads of the process that have or want the array lock or
//! sleep in a set, and the flag `RETIRED`.
//!
//! | transition | by | label |
//! |---|---|---|
//! | one more, if not `RETIRED` | a thread that is about to take the array lock | (hold) |
//! | `RETIRED` set | the thread that takes the array out of the table | (retire) |
//! | one less | a thread that has released the lock, or that sleeps no more | (let go) |
//!
//! # Invariants
//! 1. The mapping is made blank after (retire), when no user is left. So a lock is released in the
//!    memory in which it was acquired, and a set that was performed is not taken for a removed one.
//! 2. A child of fork inherits the number, but not the other threads. It may keep the memory of a
//!    removed array until it ends.
//! 3. A mapping that has lost a part of its file (see `signal/mod.rs`) is lost, and out of the
//!    table, before that part is made blank. So no operation changes its words that has not begun
//!    before, and others get EIO. What is before the part stays the file's. So a holder of the
//!    array lock releases it for the other processes too.
//! 4. An array takes the place of another one in the table only if the registry has it, at a moment
//!    after the other one was read there. So the other one was removed before: an index has one
//!    array at a time. A thread may open a file, and come to the table after that array is removed
//!    and the next one made. It leaves the table as it is, for threads use the next one. An array
//!    that is being made has no entry yet, but its maker has the registry's lock.
//!
//! No lock guards the table, so it works in a child of fork and in a signal handler.
//!
//! # Ordering
//! (let go) is Release, and Acquire for the thread that makes the mapping blank: all uses come
//! before. (retire) is Acquire for the same. (hold) is `Relaxed`. One that fails is let go, and so
//! acquires (retire), which is Release. So a thread that is told EINVAL sees what was done before.
//!
//! A thread without a hold looks at `removed` and `magic` by Acquire. `removed` is Release. A blank
//! page comes by a system call, which is a full barrier. So a thread that finds either sees all
//! that was done before, and that it is `RETIRED` or lost.

#[cfg(files)]
mod mapping;
#[cfg(not(files))]
#[path = "../world/mapping.rs"]
mod mapping;

pub use mapping::*;

use crate::layout::{Header, Layout, MAGIC, MOST_OPS, PAGE, PROCESSES, Row, Sleeper};
use crate::sys::{Answer, Errno};
use crate::word::Word;
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, AtomicU32, AtomicU64, fence};

/// The process's view of a mapped array. It lives for ever; its mapping may be blank after the
/// array is removed.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Array {
    /// The id.
    pub id: u32,
    /// How many semaphores.
    pub nsems: u32,
    base: *mut u8,
    /// The access that was found: the process in the upper half, then `access` of the header and
    /// two bits. See `access.rs`.
    pub granted: AtomicU64,
    layout: Layout,
    /// The slot that this process had last.
    pub last_slot: AtomicU32,
    /// When this process has last asked the kernel for threads that have tokens here, in
    /// nanoseconds of CLOCK_MONOTONIC.
    pub asked: AtomicU64,
    users: AtomicU32,
    /// [`WHOLE`], [`BLANK`] or [`LOST`].
    contents: AtomicU32,
    /// The array that was mapped before.
    next: AtomicPtr<Array>,
}

/// A flag of `users`: the array is not in the table any more.
const RETIRED: u32 = 1 << 31;

/// Of `contents`: nothing is known against the mapping.
const WHOLE: u32 = 0;
/// The array is removed, and its mapping blank or about to be.
const BLANK: u32 = 1;
/// The process has found that the file became shorter than the mapping. The first page may be
/// whole, so it does not tell.
const LOST: u32 = 2;

// SAFETY: all that is behind the pointer is atomic.
unsafe impl Sync for Array {}
// SAFETY: as above; nothing belongs to a thread.
unsafe impl Send for Array {}

impl Array {
    /// The view of a mapping that begins at `base` and has this layout.
    ///
    /// # Safety
    /// It is mapped for ever.
    pub unsafe fn of_mapping(id: u32, base: *mut u8, layout: Layout) -> Self {
        Self {
            id,
            nsems: layout.nsems as u32,
            base,
            granted: AtomicU64::new(0),
            layout,
            last_slot: AtomicU32::new(0),
            asked: AtomicU64::new(0),
            users: AtomicU32::new(0),
            contents: AtomicU32::new(WHOLE),
            next: AtomicPtr::new(null_mut()),
        }
    }

    /// The header.
    #[inline]
    pub fn head(&self) -> &Header {
        // SAFETY: the mapping begins with a page, and stays mapped; all fields are atomic.
        unsafe { &*self.base.cast() }
    }

    /// A reference to what is `offset` into the mapping.
    ///
    /// # Safety
    /// A `T` is all atomic, fits there, and the offset is a multiple of its alignment.
    #[inline]
    unsafe fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the caller's promise; the mapping stays.
        unsafe { &*self.base.add(offset).cast() }
    }

    /// The word of a semaphore.
    #[inline]
    pub fn word(&self, index: u32) -> Option<&AtomicU64> {
        if index >= self.nsems {
            return None;
        }
        // SAFETY: the index was checked, and there is a word for each semaphore.
        Some(unsafe { self.at(PAGE + ((index as usize) << self.layout.shift)) })
    }

    /// What the word of a semaphore holds, for a thread without the array lock. It comes after the
    /// calls before, as `perform::single` has it, so it is an exchange.
    pub fn look(&self, index: u32) -> Word {
        Word(self.word(index).map_or(Word::REMOVED, |word| word.fetch_or(0, AcqRel)))
    }

    /// What the word of a semaphore holds, for the holder of the array lock.
    pub fn load(&self, index: u32) -> Word {
        Word(self.word(index).map_or(Word::REMOVED, |word| word.load(Acquire)))
    }

    /// Writes a word that has `BUSY` or `WATCHED`, by the holder of the array lock.
    pub fn store(&self, index: u32, word: Word) {
        if let Some(place) = self.word(index) {
            place.store(word.0, Release);
        }
    }

    /// How many sleepers and rows want a semaphore watched.
    pub fn watch(&self, index: u32) -> Option<&AtomicU32> {
        if index >= self.nsems {
            return None;
        }
        // SAFETY: the index was checked, and there is a count for each semaphore.
        Some(unsafe { self.at(PAGE + ((index as usize) << self.layout.shift) + size_of::<Word>()) })
    }

    /// How many slots for sleepers there are.
    pub fn slots(&self) -> usize {
        self.layout.slots
    }

    /// A place of the queue.
    pub fn place(&self, index: usize) -> Option<&AtomicU32> {
        if index >= self.layout.slots {
            return None;
        }
        // SAFETY: the index was checked, and there is a place for each slot.
        Some(unsafe { self.at(self.layout.queue + 4 * index) })
    }

    /// A sleeper.
    pub fn sleeper(&self, index: usize) -> Option<&Sleeper> {
        if index >= self.layout.slots {
            return None;
        }
        // SAFETY: the index was checked.
        Some(unsafe { self.at(self.layout.sleepers + size_of::<Sleeper>() * index) })
    }

    /// An operation of a sleeper.
    pub fn operation(&self, slot: usize, index: usize) -> Option<&AtomicU64> {
        if slot >= self.layout.slots || index >= MOST_OPS {
            return None;
        }
        // SAFETY: both were checked, and each slot has room for so many operations.
        Some(unsafe { self.at(self.layout.operations + 8 * (MOST_OPS * slot + index)) })
    }

    /// An entry of the journal.
    pub fn entry(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.layout.nsems.max(MOST_OPS) {
            return None;
        }
        // SAFETY: the index was checked.
        Some(unsafe { self.at(self.layout.journal + 8 * index) })
    }

    /// The row of a process.
    pub fn row(&self, process: usize) -> Option<&Row> {
        if process >= PROCESSES {
            return None;
        }
        // SAFETY: the index was checked, and each slot of a process has a row.
        Some(unsafe { self.at(self.layout.rows + self.layout.row * process) })
    }

    /// The adjustment of a process for a semaphore: an `i16`.
    pub fn adjustment(&self, process: usize, index: u32) -> Option<&AtomicU32> {
        if process >= PROCESSES || index >= self.nsems {
            return None;
        }
        let row = self.layout.rows + self.layout.row * process;
        // SAFETY: both were checked, and a row has an adjustment for each semaphore.
        Some(unsafe { self.at(row + size_of::<Row>() + 4 * index as usize) })
    }

    /// Whether the array is removed, or its mapping or a part of it blank.
    pub fn is_gone(&self) -> bool {
        let head = self.head();
        head.removed.load(Acquire) != 0 || head.magic.load(Acquire) != MAGIC || self.is_lost()
    }

    /// What a call on an array that is gone ends with: EINVAL if it was removed, EIO if its file
    /// was truncated or cleared.
    pub fn why_gone(&self) -> Errno {
        let is_removed = self.head().removed.load(Acquire) != 0 || self.users.load(Relaxed) & RETIRED != 0;
        if is_removed && !self.is_lost() { libc::EINVAL } else { libc::EIO }
    }

    /// Whether no part of the mapping was blank when the caller looked at it. This publishes
    /// nothing: what may be blank was read by Acquire before.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.contents.load(Relaxed) == WHOLE
    }

    /// Whether the mapping has lost its file. It is read as in [`is_whole`](Self::is_whole).
    pub fn is_lost(&self) -> bool {
        self.contents.load(Relaxed) == LOST
    }

    /// What a call on this array ends with: EIO if the array was lost meanwhile.
    ///
    /// # Errors
    /// As in `answer`, and EIO.
    pub fn unless_lost<T>(&self, answer: Answer<T>) -> Answer<T> {
        if self.is_lost() { Err(libc::EIO) } else { answer }
    }

    /// What a call ends with that has no hold on the array and has changed nothing: what it has
    /// read may be of blank memory.
    ///
    /// # Errors
    /// As in `answer`; EINVAL if the array was removed meanwhile; EIO if it was lost.
    pub fn unless_blank<T>(&self, answer: Answer<T>) -> Answer<T> {
        fence(Acquire); // Of what the caller has read nothing is younger than the word.
        match self.contents.load(Relaxed) {
            WHOLE => answer,
            BLANK => Err(libc::EINVAL),
            _ => Err(libc::EIO),
        }
    }

    /// (hold): the mapping keeps its contents until [`let_go`](Self::let_go).
    ///
    /// # Errors
    /// EINVAL if the array is removed.
    pub fn hold(&self) -> Answer<()> {
        if self.users.fetch_add(1, Relaxed) & RETIRED != 0 {
            self.let_go();
            return Err(libc::EINVAL);
        }
        Ok(())
    }

    /// (hold) of a thread that holds the mapping already, and so does not ask whether it is
    /// retired.
    pub fn hold_again(&self) {
        self.users.fetch_add(1, Relaxed);
    }

    /// (let go)
    pub fn let_go(&self) {
        if self.users.fetch_sub(1, AcqRel) == RETIRED + 1 {
            self.empty();
        }
    }

    /// (retire)
    fn retire(&self) {
        if self.users.fetch_or(RETIRED, AcqRel) & !RETIRED == 0 {
            self.empty();
        }
    }

    fn empty(&self) {
        self.contents.fetch_max(BLANK, Relaxed); // The system call that follows is a full barrier.
        self.blank();
    }

    /// The indices of the rows in use.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        let words = self.head().row_words.load(Relaxed) as usize;
        self.head().rows.iter().take(words).enumerate().flat_map(|(at, bits)| {
            let mut bits = bits.load(Relaxed);
            core::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                (bit < 64).then(|| {
                    bits &= bits - 1;
                    64 * at + bit
                })
            })
        })
    }
}
