//! What a thread remembers of the locks it uses: advice, but a word in it is open (invariant 9 of
//! `queue/mutex.rs`).

use core::cell::Cell;

/// What the calling thread remembers: its releases past waiters, and its reads.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    count: Cell<u8>,
    reads: Cell<u8>,
    alone: Cell<usize>,
    left: Cell<usize>,
}

impl Releases {
    #[cfg(world = "machine")]
    pub(crate) const fn new() -> Self {
        Self { count: Cell::new(0), reads: Cell::new(0), alone: Cell::new(0), left: Cell::new(0) }
    }

    /// Counts one more release; whether it is the `n`-th, the `2n`-th, and so on.
    #[inline]
    pub(crate) fn is_nth(&self, n: u8) -> bool {
        Self::counts(&self.count, n)
    }

    /// The same of a read.
    #[inline]
    pub(crate) fn is_nth_read(&self, n: u8) -> bool {
        Self::counts(&self.reads, n)
    }

    #[inline]
    fn counts(counter: &Cell<u8>, n: u8) -> bool {
        let count = counter.get() + 1;
        counter.set(if count >= n { 0 } else { count });
        count >= n
    }

    /// What was remembered of the lock at `address`: the word that the thread left there when it
    /// was active alone. Else zero.
    #[inline]
    pub(crate) fn left(&self, address: usize) -> usize {
        if self.alone.get() == address { self.left.get() } else { 0 }
    }

    /// Remembers the word of the lock at `address`, or zero, and forgets that of another lock.
    #[inline]
    pub(crate) fn set_left(&self, address: usize, word: usize) {
        self.alone.set(address);
        self.left.set(word);
    }
}
