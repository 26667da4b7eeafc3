//! What a thread remembers of its releases: advice, never needed to be right.

use core::cell::Cell;

/// What the calling thread remembers of its releases past waiters.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    count: Cell<u8>,
    alone: Cell<usize>,
}

impl Releases {
    #[cfg(world = "machine")]
    pub(crate) const fn new() -> Self {
        Self { count: Cell::new(0), alone: Cell::new(0) }
    }

    /// Counts one more; whether it is the `n`-th, the `2n`-th, and so on.
    #[inline]
    pub(crate) fn is_nth(&self, n: u8) -> bool {
        let count = self.count.get() + 1;
        self.count.set(if count >= n { 0 } else { count });
        count >= n
    }

    /// The address of the lock at which the thread is active alone, or zero.
    #[inline]
    pub(crate) fn alone(&self) -> usize {
        self.alone.get()
    }

    /// Remembers an address, or zero.
    #[inline]
    pub(crate) fn set_alone(&self, address: usize) {
        self.alone.set(address);
    }
}
