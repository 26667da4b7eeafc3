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
//! (`set.rs`). A task has no clock, so a thread that waits does that in its place.

use super::Session;
use super::heap::Heap;
use crate::node::Node;
use crate::op::{Action, Op};
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

    /// Whether the oldest aged set is that of a task, which has no clock to let others pass by.
    pub fn is_oldest_aged_a_task(&self) -> bool {
        let oldest = self.array.array_lock.oldest_aged();
        // SAFETY: as in `oldest_aged`.
        unsafe { oldest.as_ref().is_some_and(|node| node.links(|links| !links.bell.is_null())) }
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

    /// Makes `node` aged. If it is the oldest now, the sets are served that stopped for the one
    /// before.
    ///
    /// # Safety
    /// The node is in a queue, and not aged; the session has the array lock.
    pub unsafe fn make_aged(&mut self, node: *const Node) {
        let was = self.array.array_lock.oldest_aged();
        // SAFETY: with the array lock the node and the aged sets are this session's.
        unsafe {
            self.array.array_lock.insert_aged(node);
            if !was.is_null() && self.is_oldest_aged(node) {
                let mut heap = Heap::new();
                let at = self.lock_as_far(was);
                self.aged_changed(was, 0..at + 1, &mut heap);
                self.serve(heap);
            }
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
