//! The cascade: what follows from a change when complex sets wait. With the array lock, one waiting
//! set after the other is served, because what it changes may let others proceed.
//!
//! *Candidates* are the sets that a change may let proceed, or make stop elsewhere. They stop at a
//! semaphore that grew, wait for one that became zero, or watch one that changed. The cascade takes
//! out the candidate that comes first in the order of service, and evaluates it. The set proceeds,
//! or fails, or stops: where it was, or at another semaphore. Then the next candidate follows.
//!
//! Many subtractions may be queued at one semaphore. Only the first of them is a candidate, and is
//! marked as the *cursor*: the sets behind it have not been evaluated since the semaphore grew.
//! After the cursor was evaluated, the next set in the queue becomes the cursor, unless the value
//! is zero. So each evaluation is paid for by a change of a semaphore that decides about the set.
//! No set is evaluated twice for one change.
//!
//! # Order of service
//! Sets that change nothing come first, since they take nothing from others. Of the others the
//! oldest that can proceed does. When a set has proceeded, older sets that its changes may help
//! become candidates again, and come before the younger ones.

use super::heap::Heap;
use super::{Session, Stopped};
use crate::node::{Node, Outcome, QUEUE, Watch};
use crate::op::{Action, Op};
use crate::raw::Fairness;
use crate::word::Stop;
use core::mem;
use core::ops::Range;
use ulocks_core::policy::InOneProcess;

impl<P: InOneProcess> Session<'_, P> {
    /// Serves all sets that can proceed after `ops` were performed.
    pub fn cascade(&mut self, ops: &[Op]) {
        let mut heap = Heap::new();
        self.performed(ops, &mut heap);
        self.serve(heap);
    }

    /// Serves the candidates, and the sets that become candidates by that.
    pub fn serve(&mut self, mut heap: Heap) {
        // SAFETY: with the array lock, all nodes in the heap are this session's: they are queued at
        // cells with COMPLEX, or at cells that it has locked. They are alive because they have not
        // been completed.
        unsafe {
            while let Some(node) = heap.pop() {
                let ops = (*node).ops();
                let (at, ticket, behind, was_cursor) = (*node).links(|links| {
                    let behind = links.neighbours[QUEUE].younger;
                    (links.at, links.ticket, behind, mem::take(&mut links.cursor))
                });
                let index = ops[at].index;
                match self.evaluate(ops, ticket) {
                    Err(Stopped { at: now, why: Stop::Blocks }) if !ops[now].no_wait => {
                        if now != at {
                            self.move_on(node, now, &mut heap);
                        }
                        self.grow_old(node, &mut heap);
                    }
                    Err(stopped) => self.end(node, stopped.outcome(), &mut heap),
                    Ok(()) => {
                        self.end(node, Outcome::Done, &mut heap);
                        self.performed(ops, &mut heap);
                    }
                }
                if was_cursor {
                    self.put_cursor(index, behind, &mut heap);
                }
            }
        }
    }

    /// Adds the candidates after `ops` were performed.
    fn performed(&mut self, ops: &[Op], heap: &mut Heap) {
        for op in ops.iter().filter(|op| op.alters()) {
            self.changed(op.index, op.action == Action::Add, heap);
        }
    }

    /// Adds the candidates after the value of a cell has changed. `grew` says whether it may be
    /// greater now.
    pub fn changed(&mut self, index: u32, grew: bool, heap: &mut Heap) {
        let cell = &self.array.cells[index as usize];
        // SAFETY: the session has the array lock and the cell, so the nodes and watches there are
        // its own, and alive.
        unsafe {
            let (watching, oldest) =
                cell.inside(|inside| (inside.watches.iter(), inside.subtractions.oldest));
            watching.for_each(|node| heap.push(node));
            if grew {
                self.put_cursor(index, oldest, heap);
            }
            if self.value(index) == 0 {
                self.add_others(index, heap);
            } else if !grew && matches!(self.array.fairness, Fairness::Strict { .. }) {
                // They are not evaluated: it is not zero.
                let waiting = cell.inside(|inside| inside.others.iter());
                waiting.for_each(|node| self.grow_old(node, heap));
            }
        }
    }

    /// Makes `node` a candidate, and the cursor of its queue, unless the value is zero.
    ///
    /// # Safety
    /// The node is null, or in the queue of subtractions of the cell. The session has the cell and
    /// the array lock.
    pub(super) unsafe fn put_cursor(&mut self, index: u32, node: *const Node, heap: &mut Heap) {
        if !node.is_null() && self.value(index) != 0 {
            // SAFETY: as the caller says.
            unsafe {
                (*node).links(|links| links.cursor = true);
                heap.push(node);
            }
        }
    }

    /// Makes candidates of the sets that stop at the cell, but not at a subtraction.
    ///
    /// # Safety
    /// The session has the array lock and the cell.
    pub(super) unsafe fn add_others(&mut self, index: u32, heap: &mut Heap) {
        // SAFETY: as the caller says.
        unsafe {
            let waiting = self.array.cells[index as usize].inside(|inside| inside.others.iter());
            waiting.for_each(|node| heap.push(node));
        }
    }

    /// Enqueues a new node at the operation at which it stops.
    ///
    /// # Safety
    /// The node is new, has the greatest ticket, and lives until it is completed or taken out. Its
    /// cells up to `at` are locked. If it is complex, the session has the array lock, and the node
    /// has watches.
    pub unsafe fn enqueue(&mut self, node: *const Node, at: usize, complex: bool) {
        // SAFETY: as the caller says.
        unsafe {
            (*node).links(|links| (links.at, links.complex) = (at, complex));
            let op = &(*node).ops()[at];
            self.array.cells[op.index as usize].inside(|inside| inside.enqueue(node, op, complex));
            self.watch(node, 0..at, true);
        }
    }

    /// Moves a complex node to the operation at which it stops `now`. It keeps its ticket, so its
    /// age.
    ///
    /// # Safety
    /// The session has the array lock. The node is in a queue, at a cell with `COMPLEX` or at one
    /// that the session has locked.
    unsafe fn move_on(&mut self, node: *const Node, now: usize, heap: &mut Heap) {
        // SAFETY: with the array lock the node is this session's. Its cells up to where it was are
        // locked here; its evaluation has locked them up to where it is now.
        unsafe {
            let was = self.lock_as_far(node);
            let op = &(*node).ops()[now];
            self.take_out(node);
            (*node).links(|links| links.at = now);
            self.array.cells[op.index as usize].inside(|inside| inside.enqueue(node, op, true));
            self.watch(node, was..now, true);
            self.watch(node, now..was, false);
            if self.is_oldest_aged(node) {
                // Which operations take from it, and which give to it, has changed.
                self.aged_changed(node, 0..was.max(now) + 1, heap);
            }
        }
    }

    /// Takes a node out of its queue, to complete it with `outcome`.
    ///
    /// # Safety
    /// As `move_on`.
    pub unsafe fn end(&mut self, node: *const Node, outcome: Outcome, heap: &mut Heap) {
        // SAFETY: as the caller says.
        unsafe {
            self.leave(node, heap);
            self.will_complete(node, outcome);
        }
    }

    /// Takes a node out of its queue and out of the list of aged sets, and unlinks its watches.
    ///
    /// # Safety
    /// As `move_on`.
    pub unsafe fn leave(&mut self, node: *const Node, heap: &mut Heap) {
        // SAFETY: with the array lock the node is this session's, and its cells up to where it
        // stops are locked.
        unsafe {
            let at = self.lock_as_far(node);
            let was_oldest = self.is_oldest_aged(node);
            self.take_out(node);
            self.watch(node, 0..at, false);
            self.array.array_lock.remove_aged(node);
            if was_oldest {
                self.aged_changed(node, 0..at + 1, heap);
            }
        }
    }

    /// Locks the cells of a node up to the operation at which it stops; returns the position of
    /// that operation.
    ///
    /// # Safety
    /// As `move_on`.
    pub(super) unsafe fn lock_as_far(&mut self, node: *const Node) -> usize {
        // SAFETY: with the array lock the node is this session's.
        let (ops, at) = unsafe { ((*node).ops(), (*node).links(|links| links.at)) };
        for op in &ops[..=at] {
            let open = self.lock(op.index);
            debug_assert!(open, "a closed array has no waiting sets");
        }
        at
    }

    /// Links or unlinks the watches of the operations in `range`.
    ///
    /// # Safety
    /// The session has the array lock and the cells of these operations. Their watches are not
    /// linked if `on`, and linked if not.
    unsafe fn watch(&mut self, node: *const Node, range: Range<usize>, on: bool) {
        // SAFETY: a node that gets beyond its first operation has a watch for each operation.
        unsafe {
            let watches: *const Watch = (*node).links(|links| links.watches);
            for at in range {
                let op = &(*node).ops()[at];
                self.array.cells[op.index as usize].inside(|inside| {
                    let watch = watches.add(at);
                    if on { inside.watches.insert(watch) } else { inside.watches.remove(watch) }
                });
            }
        }
    }
}

impl Stopped {
    /// The outcome of a waiting set that stops so and cannot wait on.
    pub fn outcome(self) -> Outcome {
        match self.why {
            Stop::Blocks => Outcome::WouldBlock,
            Stop::OutOfRange => Outcome::OutOfRange(self.at),
            Stop::Closed => Outcome::Closed,
        }
    }
}
