//! Aged sets: how an array with [`Fairness::Strict`](crate::Fairness::Strict) bounds the wait of a
//! set.
//!
//! A waiting set becomes *aged* when it has waited for the bound. All waiting sets of such an array
//! are complex. The oldest of the aged sets stops others: a set that came later stops at an
//! operation that *takes* from it. That is a subtraction where the aged set subtracts, and an
//! addition where it waits for zero. Only its operations up to the one at which it stops count,
//! because it cannot use the later ones yet. A set that also *gives* to the aged set does not stop
//! for it: perhaps no other set would.
//!
//! A thread may hold what the aged set needs, and ask for more before it gives that back. It would
//! wait for the aged set, which waits for it. System V does not have this deadlock, and neither has
//! this array: from time to time the oldest aged set lets all sets pass that it stops, once
//! (`set.rs`).
//!
//! # Tasks
//! A thread sleeps until its set becomes aged, or lets others pass. A task is not polled then. So
//! others look at the clock of its set:
//! - (grow old) a session that has evaluated it in vain, or that has taken from a semaphore which
//!   the set wants to be zero. What lets a set starve is that others take what was given back, and
//!   whoever gives back evaluates the set first; or that others give before all was taken.
//! - (strike) a session with the array lock, before it ends, at the clock of the oldest aged set. A
//!   thread that waits, and the poll of a task that waits, begin one when the time of their own
//!   sets has come.

use super::Session;
use super::heap::Heap;
use crate::node::Node;
use crate::op::{Action, Op};
use crate::set::Ages;
use core::ops::Range;
use core::ptr;
use ulocks_core::policy::InOneProcess;

impl<P: InOneProcess> Session<'_, P> {
    /// Whether a set has to stop at an operation that takes from the oldest aged set.
    pub fn stops_for_aged(&self, ops: &[Op], ticket: u64) -> bool {
        let Some((aged, its_ticket)) = self.oldest_aged() else { return false };
        !self.passes && ticket > its_ticket && !ops.iter().any(|op| aged.iter().any(|its| gives(op, its)))
    }

    /// Whether `op` takes from the oldest aged set.
    pub fn takes_from_aged(&self, op: &Op) -> bool {
        self.oldest_aged().is_some_and(|(aged, _)| aged.iter().any(|its| takes(op, its)))
    }

    /// The operations of the oldest aged set up to the one at which it stops, and its ticket.
    fn oldest_aged(&self) -> Option<(&[Op], u64)> {
        let oldest = self.array.array_lock.oldest_aged();
        // SAFETY: the session has the array lock, so the aged sets stay and are alive, and their
        // links are this session's.
        unsafe { oldest.as_ref().map(|node| node.links(|links| (&node.ops()[..=links.at], links.ticket))) }
    }

    /// Whether this is the oldest aged set.
    pub fn is_oldest_aged(&self, node: *const Node) -> bool {
        ptr::eq(self.array.array_lock.oldest_aged(), node)
    }

    /// Makes candidates of the sets that may have stopped for an aged set, which has left, or stops
    /// at another operation now.
    ///
    /// # Safety
    /// The session has the array lock and the cells of these operations.
    pub(super) unsafe fn aged_changed(&mut self, node: *const Node, range: Range<usize>, heap: &mut Heap) {
        // SAFETY: as the caller says; the node is alive, since it has not been completed.
        unsafe {
            for op in &(*node).ops()[range] {
                let oldest = self.array.cells[op.index as usize].inside(|inside| inside.subtractions.oldest);
                self.put_cursor(op.index, oldest, heap);
                self.add_others(op.index, heap);
            }
        }
    }

    /// Makes `node` aged. If it is the oldest now, the sets are candidates that stopped for the one
    /// before.
    ///
    /// # Safety
    /// The node is in a queue, and not aged; the session has the array lock.
    pub unsafe fn make_aged(&mut self, node: *const Node, heap: &mut Heap) {
        let was = self.array.array_lock.oldest_aged();
        // SAFETY: with the array lock the node and the aged sets are this session's.
        unsafe {
            self.array.array_lock.insert_aged(node);
            if !was.is_null() && self.is_oldest_aged(node) {
                let at = self.lock_as_far(was);
                self.aged_changed(was, 0..at + 1, heap);
            }
        }
    }

    /// (grow old): the set of a task that waits on becomes aged if its time has come.
    ///
    /// # Safety
    /// The node is in a queue; the session has the array lock.
    pub(super) unsafe fn grow_old(&mut self, node: *const Node, heap: &mut Heap) {
        // SAFETY: with the array lock the node is this session's.
        unsafe {
            let is_due = (*node).links(|links| !links.aged && links.ages.as_mut().is_some_and(Ages::strikes));
            if is_due {
                self.make_aged(node, heap);
            }
        }
    }

    /// (strike): if the oldest aged set is a task's, and its time has come, lets the sets pass that
    /// stop for it.
    pub(super) fn strike(&mut self) {
        let oldest = self.array.array_lock.oldest_aged();
        // SAFETY: as in `oldest_aged`.
        let strikes = unsafe {
            oldest
                .as_ref()
                .is_some_and(|node| node.links(|links| links.ages.as_mut().is_some_and(Ages::strikes)))
        };
        if strikes {
            self.let_pass();
        }
    }

    /// Lets the sets pass, once, that stop for the oldest aged set. There is one.
    pub fn let_pass(&mut self) {
        let oldest = self.array.array_lock.oldest_aged();
        let mut heap = Heap::new();
        self.passes = true;
        // SAFETY: with the array lock the aged set is alive, and its cells are locked here.
        unsafe {
            let at = self.lock_as_far(oldest);
            self.aged_changed(oldest, 0..at + 1, &mut heap);
        }
        self.serve(heap);
        self.passes = false;
    }
}

/// Whether `op` takes from a set that has the operation `its`.
fn takes(op: &Op, its: &Op) -> bool {
    let hurts = match its.action {
        Action::Sub => op.action == Action::Sub,
        Action::WaitZero => op.action == Action::Add,
        Action::Add => false,
    };
    op.index == its.index && op.alters() && hurts
}

/// Whether `op` gives to a set that has the operation `its`.
fn gives(op: &Op, its: &Op) -> bool {
    let helps = match its.action {
        Action::Sub => op.action == Action::Add,
        Action::WaitZero => op.action == Action::Sub,
        Action::Add => false,
    };
    op.index == its.index && op.alters() && helps
}
