//! A cell: one semaphore of an array, its state word and its queues.

use crate::node::{Node, Queue, Watches};
use crate::op::{Action, Op};
use crate::word::State;
use ulocks_core::sync::{AtomicU32, AtomicUsize, UnsafeCell};

/// The index of no semaphore.
pub(crate) const NONE: u32 = u32::MAX;

/// One semaphore, on a pair of cache lines of its own: processors fetch the other line of a pair,
/// too. So threads on different semaphores do not contend.
#[repr(align(128))]
pub(crate) struct Cell {
    pub word: AtomicU32,
    /// The number of the session that has `LOCK`. A session compares it with its own number, which
    /// no other thread writes.
    pub holder: AtomicUsize,
    inside: UnsafeCell<Inside>,
}

/// What the holder of `LOCK` may touch. Queues and watches of a cell with `COMPLEX` need the array
/// lock, too.
pub(crate) struct Inside {
    /// Sets that stop here at a subtraction.
    pub subtractions: Queue,
    /// Sets that stop here at another operation: they wait for zero, or stop for an aged set at an
    /// addition.
    pub others: Queue,
    /// Complex sets that stop at a later operation, and have an earlier one here.
    pub watches: Watches,
    /// How many sets in the queues are complex.
    pub complex: u32,
    /// The cell that the session locked before this one.
    pub held_before: u32,
}

impl Cell {
    pub fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(State::with_value(value).0),
            holder: AtomicUsize::new(0),
            inside: UnsafeCell::new(Inside {
                subtractions: Queue::new(),
                others: Queue::new(),
                watches: Watches::new(),
                complex: 0,
                held_before: NONE,
            }),
        }
    }

    /// Calls `f` with the inside.
    ///
    /// # Safety
    /// The caller has `LOCK`. If it touches queues or watches of a cell with `COMPLEX`, it has the
    /// array lock. `f` does not call this for the same cell.
    #[inline]
    pub unsafe fn inside<R>(&self, f: impl FnOnce(&mut Inside) -> R) -> R {
        // SAFETY: no other reference to the inside exists, as the caller promises.
        self.inside.with_mut(|inside| f(unsafe { &mut *inside }))
    }
}

impl Inside {
    /// The queue for sets that stop at `op`.
    pub fn queue(&mut self, op: &Op) -> &mut Queue {
        if op.action == Action::Sub { &mut self.subtractions } else { &mut self.others }
    }

    /// The flags of the word, read off the queues and watches.
    pub fn flags(&self) -> u32 {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        flag(!self.subtractions.is_empty(), State::SUBTRACTIONS)
            | flag(!self.others.is_empty(), State::ZERO)
            | flag(self.complex != 0 || !self.watches.is_empty(), State::COMPLEX)
    }

    /// Enqueues a node that stops at `op`.
    ///
    /// # Safety
    /// As [`Queue::insert`].
    pub unsafe fn enqueue(&mut self, node: *const Node, op: &Op, complex: bool) {
        self.complex += u32::from(complex);
        // SAFETY: as the caller says.
        unsafe { self.queue(op).insert(node) };
    }

    /// Takes a node out of the queue for `op`.
    ///
    /// # Safety
    /// As [`Queue::remove`].
    pub unsafe fn dequeue(&mut self, node: *const Node, op: &Op, complex: bool) {
        self.complex -= u32::from(complex);
        // SAFETY: as the caller says.
        unsafe { self.queue(op).remove(node) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_pair_of_lines_and_uses_one() {
        assert_eq!((size_of::<Cell>(), align_of::<Cell>()), (128, 128));
        assert!(core::mem::offset_of!(Cell, inside) + size_of::<Inside>() <= 64);
    }
}
