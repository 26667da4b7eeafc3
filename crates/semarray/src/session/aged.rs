//! Aged sets: which set stops for which, and what changes when the oldest of them does.

use super::Session;
use super::array_lock::ArrayLock;
use super::heap::Heap;
use crate::array::InOneProcess;
use crate::node::Node;
use crate::op::{Action, Op};
use core::ops::Range;
use core::ptr;

impl<P: InOneProcess> Session<'_, P> {
    /// Whether a set has to stop where it hurts the eldest.
    pub fn stops_for_aged(&self, ops: &[Op], ticket: u64) -> bool {
        let Some((aged, its_ticket)) = self.oldest_aged() else { return false };
        !self.passes && ticket > its_ticket && !ops.iter().any(|op| aged.iter().any(|its| gives(op, its)))
    }

    /// Whether `op` takes from the eldest.
    pub fn takes_from_aged(&self, op: &Op) -> bool {
        self.oldest_aged().is_some_and(|(aged, _)| aged.iter().any(|its| takes(op, its)))
    }

    /// The operations of the eldest as far as it has got, and its age.
    fn oldest_aged(&self) -> Option<(&[Op], u64)> {
        let oldest = self.array.array_lock.oldest_aged();
        // SAFETY: the session has C, so the elders are alive and stay, and their links are this
        // session's.
        unsafe { oldest.as_ref().map(|node| node.links(|links| (&node.ops()[..=links.at], links.ticket))) }
    }

    pub fn is_oldest_aged(&self, node: *const Node) -> bool {
        ptr::eq(self.array.array_lock.oldest_aged(), node)
    }

    /// Makes candidates of those who may have stopped for an elder that has left, or got further or
    /// less far.
    ///
    /// # Safety
    /// The session has `C` and the cells of these operations.
    pub(super) unsafe fn aged_left(&mut self, node: *const Node, range: Range<usize>, heap: &mut Heap) {
        // SAFETY: as the caller says; the elder is alive, since it has not been told.
        unsafe {
            for op in &(*node).ops()[range] {
                let oldest = self.array.cells[op.index as usize].inside(|inside| inside.subtractions.oldest);
                self.put_cursor(op.index, oldest, heap);
                self.wake_others(op.index, heap);
            }
        }
    }

    /// Makes an elder of `node`. If it is the eldest now, those are served who stopped for the one
    /// that was.
    ///
    /// # Safety
    /// The node is in a queue, and no elder; the session has `C`.
    pub unsafe fn make_aged(&mut self, node: *const Node) {
        let was = self.array.array_lock.oldest_aged();
        // SAFETY: with C the node and the elders are this session's.
        unsafe {
            self.array.array_lock.insert_aged(node);
            if !was.is_null() && self.is_oldest_aged(node) {
                let mut heap = Heap::new();
                let at = self.lock_as_far(was);
                self.aged_left(was, 0..at + 1, &mut heap);
                self.serve(heap);
            }
        }
    }

    /// Lets those pass, once, who stop for the eldest. There is one.
    pub fn let_pass(&mut self) {
        let oldest = self.array.array_lock.oldest_aged();
        let mut heap = Heap::new();
        self.passes = true;
        // SAFETY: with C the eldest is alive, and its cells are locked here.
        unsafe {
            let at = self.lock_as_far(oldest);
            self.aged_left(oldest, 0..at + 1, &mut heap);
        }
        self.serve(heap);
        self.passes = false;
    }
}

impl ArrayLock {
    /// The oldest of the elders, for the holder of `C`.
    pub fn oldest_aged(&self) -> *const Node {
        // SAFETY: only holders of C come here, and none of them in the middle of a change.
        self.aged.with(|aged| unsafe { (*aged).0 })
    }

    /// Makes an elder of `node`, for the holder of `C`. It goes before those that are younger, of
    /// which there are few: they grew old sooner.
    ///
    /// # Safety
    /// The node is in a queue, alive until it leaves the elders, and its links are the caller's.
    pub unsafe fn insert_aged(&self, node: *const Node) {
        // SAFETY: the elders are alive, and the caller's with C.
        unsafe {
            let mut younger: *const Node = ptr::null();
            let mut older = self.aged.with(|aged| (*aged).1);
            while !older.is_null() && (*node).is_older(&*older) {
                younger = older;
                older = (*older).links(|links| links.older);
            }
            (*node).links(|links| {
                links.aged = true;
                (links.older, links.younger) = (older, younger);
            });
            self.set_younger(older, node);
            self.set_older(younger, node);
        }
    }

    /// Takes `node` out of the elders, if it is among them, for the holder of `C`.
    ///
    /// # Safety
    /// The node's links are the caller's.
    pub unsafe fn remove_aged(&self, node: *const Node) {
        // SAFETY: as above.
        unsafe {
            let (was, older, younger) =
                (*node).links(|links| (core::mem::take(&mut links.aged), links.older, links.younger));
            if was {
                self.set_younger(older, younger);
                self.set_older(younger, older);
            }
        }
    }

    /// # Safety
    /// The caller has `C`; `node` is null or an elder.
    unsafe fn set_younger(&self, node: *const Node, younger: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            if node.is_null() {
                self.aged.with_mut(|aged| (*aged).0 = younger);
            } else {
                (*node).links(|links| links.younger = younger);
            }
        }
    }

    /// # Safety
    /// As `set_younger`.
    unsafe fn set_older(&self, node: *const Node, older: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            if node.is_null() {
                self.aged.with_mut(|aged| (*aged).1 = older);
            } else {
                (*node).links(|links| links.older = older);
            }
        }
    }
}

/// Whether `op` takes from one who needs `its`.
fn takes(op: &Op, its: &Op) -> bool {
    let hurts = match its.action {
        Action::Sub => op.action == Action::Sub,
        Action::WaitZero => op.action == Action::Add,
        Action::Add => false,
    };
    op.index == its.index && op.alters() && hurts
}

/// Whether `op` gives to one who needs `its`.
fn gives(op: &Op, its: &Op) -> bool {
    let helps = match its.action {
        Action::Sub => op.action == Action::Add,
        Action::WaitZero => op.action == Action::Sub,
        Action::Add => false,
    };
    op.index == its.index && op.alters() && helps
}
