//! A sequence lock: two words that one thread writes and others read together.
//!
//! # State
//! `sequence` is odd while the words are being written. A reader that finds it even and the same
//! before and after has read two words that belong together.
//!
//! # Ordering
//! (Boehm, "Can Seqlocks Get Along with Programming Language Memory Models?", MSPC 2012.)
//! - The writer's second store of `sequence` (W2) is Release and pairs with the reader's first load
//!   (R1), Acquire: a thread that sees the new number sees the new words.
//! - The writer's Release fence (F1), after its first store (W1), pairs with the reader's Acquire
//!   fence (F2), before its second load (R2): a thread that has seen one of the new words sees that
//!   `sequence` has changed. An Acquire on (R2) itself does not do that: it keeps what comes
//!   *after* it from moving before it, and the words come before.

use std::sync::Arc;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, fence};

/// What is wrong with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// (R2) is an Acquire load, and there is no (F2): the common bug.
    AcquireInPlaceOfFence,
    /// There is no (F1).
    NoWriterFence,
    /// (R1) is Relaxed.
    RelaxedFirstLoad,
    /// (W2) is Relaxed.
    RelaxedPublication,
}

pub struct SeqLock {
    sequence: AtomicU32,
    words: [AtomicU32; 2],
    bug: Option<Bug>,
}

impl SeqLock {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { sequence: AtomicU32::new(0), words: [AtomicU32::new(0), AtomicU32::new(0)], bug }
    }

    /// Sets both words. Called by one thread only.
    pub fn write(&self, value: u32) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence + 1, Relaxed); // (W1)
        if self.bug != Some(Bug::NoWriterFence) {
            fence(Release); // (F1)
        }
        self.words[0].store(value, Relaxed);
        self.words[1].store(value, Relaxed);
        let publish = if self.bug == Some(Bug::RelaxedPublication) { Relaxed } else { Release };
        self.sequence.store(sequence + 2, publish); // (W2)
    }

    /// Both words, unless a write is in the way.
    pub fn try_read(&self) -> Option<[u32; 2]> {
        let acquire = if self.bug == Some(Bug::RelaxedFirstLoad) { Relaxed } else { Acquire };
        let before = self.sequence.load(acquire); // (R1)
        if before % 2 == 1 {
            return None;
        }
        let words = [self.words[0].load(Relaxed), self.words[1].load(Relaxed)];
        let after = if self.bug == Some(Bug::AcquireInPlaceOfFence) {
            self.sequence.load(Acquire) // (R2)
        } else {
            fence(Acquire); // (F2)
            self.sequence.load(Relaxed) // (R2)
        };
        (before == after).then_some(words)
    }
}

/// One thread writes, twice; another reads, twice.
pub fn reading(bug: Option<Bug>) -> impl Fn() + 'static {
    move || {
        let lock = Arc::new(SeqLock::new(bug));
        super::together(2, move |thread| {
            for value in 1..=2 {
                if thread == 0 {
                    lock.write(value);
                } else if let Some([first, second]) = lock.try_read() {
                    assert_eq!(first, second, "the two words do not belong together");
                }
            }
        });
    }
}
