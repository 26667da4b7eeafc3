//! A cell: one semaphore of an array, its state word and its queues.

use crate::node::{List, Node, QUEUE, Watches};
use crate::op::{Action, Op};
use crate::sleep::groups::FEW;
use crate::word::State;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, AtomicUsize, UnsafeCell};

/// The index of no semaphore.
pub(crate) const NONE: u32 = u32::MAX;

/// One semaphore, on a pair of cache lines of its own: processors fetch the other line of a pair,
/// too. So threads on different semaphores do not contend.
#[repr(align(128))]
pub(crate) struct Cell {
    pub word: AtomicU32,
    /// Whether the cell stays locked for a leader ([`Lead`]). Only the holder of `LOCK` writes it,
    /// and of a follower only the holder of the leader's.
    pub lead: AtomicU32,
    /// The number of the session that has `LOCK`. A session compares it with its own number, which
    /// no other thread writes.
    pub holder: AtomicUsize,
    inside: UnsafeCell<Inside>,
}

/// What the holder of `LOCK` may touch. Queues and watches of a cell with `COMPLEX` need the array
/// lock, too.
pub(crate) struct Inside {
    /// Sets that stop here at a subtraction.
    pub subtractions: List<QUEUE>,
    /// Sets that stop here at another operation: they wait for zero, or stop for an aged set at an
    /// addition.
    pub others: List<QUEUE>,
    /// Complex sets that stop at a later operation, and have an earlier one here.
    pub watches: Watches,
    /// How many sets in the queues are complex.
    pub complex: u32,
    /// The cell that the session locked before this one.
    pub held_before: u32,
}

/// How a cell stands to other cells of the sets that name it. `pass.rs` tells what for.
///
/// ```text
/// a follower:     |    0    |         index of its leader          |
/// any other cell: |    1    | followers, 23 bits | rent due, 8 bits |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead(pub u32);

impl Lead {
    const OTHER: u32 = 1 << 31;
    const ONE_FOLLOWER: u32 = 1 << 8;
    const DUE: u32 = Self::ONE_FOLLOWER - 1;
    const FULL: u32 = !Self::DUE;
    /// How many sets lock a cell for themselves before it becomes a follower: as many
    /// compare-exchanges, about, as it takes to part it from its leader again. Models and debug
    /// builds, which are tests, have followers sooner.
    pub const RENT: u32 = match () {
        () if FEW => 1,
        () if cfg!(debug_assertions) => 2,
        () => 64,
    };
    /// Neither a follower nor a leader.
    pub const ALONE: Self = Self(Self::OTHER | Self::RENT);

    /// Whether a leader can have this index.
    pub const fn can_name(index: u32) -> bool {
        index < Self::OTHER
    }

    /// The leader of a follower.
    #[inline(always)]
    pub const fn leader(self) -> Option<u32> {
        if self.0 & Self::OTHER == 0 { Some(self.0) } else { None }
    }

    /// Whether a cell that is no follower may become one: the rent is paid, and it has no followers
    /// itself.
    #[inline(always)]
    pub const fn may_follow(self) -> bool {
        self.0 == Self::OTHER
    }

    /// Whether a cell that is no follower may have one more.
    #[inline(always)]
    pub const fn may_lead(self) -> bool {
        self.0 < Self::FULL
    }

    /// The same after one more set has locked the cell for itself.
    #[inline(always)]
    pub const fn paid(self) -> Self {
        Self(self.0 - (self.0 & Self::DUE != 0) as u32)
    }

    /// With one follower more.
    pub const fn more(self) -> Self {
        Self(self.0 + Self::ONE_FOLLOWER)
    }

    /// With one follower less.
    pub const fn less(self) -> Self {
        Self(self.0 - Self::ONE_FOLLOWER)
    }
}

impl Cell {
    pub fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(State::with_value(value).0),
            lead: AtomicU32::new(Lead::ALONE.0),
            holder: AtomicUsize::new(0),
            inside: UnsafeCell::new(Inside {
                subtractions: List::new(),
                others: List::new(),
                watches: Watches::new(),
                complex: 0,
                held_before: NONE,
            }),
        }
    }

    /// How the cell stands to others. Exact for the thread that has `LOCK` here, or at the leader
    /// that this names.
    #[inline(always)]
    pub fn lead(&self) -> Lead {
        Lead(self.lead.load(Relaxed))
    }

    /// Whether a thread has locked the cell: not a follower whose leader is free.
    pub fn is_held(&self) -> bool {
        State(self.word.load(Relaxed)).has(State::LOCK) && self.lead().leader().is_none()
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
    pub fn queue(&mut self, op: &Op) -> &mut List<QUEUE> {
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
    /// As [`List::insert`].
    pub unsafe fn enqueue(&mut self, node: *const Node, op: &Op, complex: bool) {
        self.complex += u32::from(complex);
        // SAFETY: as the caller says.
        unsafe {
            (*node).set_queued(true);
            self.queue(op).insert(node);
        }
    }

    /// Takes a node out of the queue for `op`.
    ///
    /// # Safety
    /// As [`List::remove`].
    pub unsafe fn dequeue(&mut self, node: *const Node, op: &Op, complex: bool) {
        self.complex -= u32::from(complex);
        // SAFETY: as the caller says.
        unsafe {
            (*node).set_queued(false);
            self.queue(op).remove(node);
        }
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
