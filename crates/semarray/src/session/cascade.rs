//! What follows from a change when sets of several operations sleep: with `C`, one sleeper after
//! the other proceeds, and what it changed lets others proceed.
//!
//! Candidates are those whose fate may have changed: who stops at a semaphore that grew, who waits
//! for one that became zero, who watches one that changed. The first among them in the order of
//! service is evaluated: it proceeds, ends, or stops, here or elsewhere; then the next. Of those
//! who stop at subtractions on one semaphore, the *cursor* stands for all behind it: they become
//! candidates one by one, and none of them once the value is zero. So each evaluation is paid for
//! by a change of a semaphore that decides about the set, and nobody is evaluated twice for one
//! change.
//!
//! # Order of service
//! Sets that change nothing come first, since they take nothing from anybody. Of the others the
//! oldest that can proceed does: when one has proceeded, those before it that its changes may help
//! are candidates again, and are on top of the heap.
//!
//! # Elders
//! An array with [`Fairness::Strict`](crate::Fairness::Strict) knows of sets that have slept too
//! long: the elders. All sleepers of such an array are complex. The eldest alone is deferred to: a
//! set that came later stops at an operation that would take from the eldest, which is a
//! subtraction where the eldest subtracts, an addition where it waits for zero; but only as far as
//! the eldest has got, up to and including the operation at which it stops, because what comes
//! after that is of no use to it yet. A set that also gives to the eldest is not stopped: nobody
//! else might.
//!
//! Somebody who already has what the eldest needs, and asks for more before giving it back, would
//! wait for the eldest, which waits for it. System V does not know this deadlock, and neither do
//! we: from time to time (see `sleep.rs`) all that are stopped are let pass, once.

use super::heap::Heap;
use super::{Session, Stopped};
use crate::array::InOneProcess;
use crate::node::{Node, Outcome, Watch};
use crate::op::{Action, Op};
use crate::word::Stop;
use core::mem;
use core::ops::Range;

impl<P: InOneProcess> Session<'_, P> {
    /// Serves all who can proceed after `ops` were performed.
    pub fn cascade(&mut self, ops: &[Op]) {
        let mut heap = Heap::new();
        self.performed(ops, &mut heap);
        self.serve(heap);
    }

    /// Serves the candidates, and those who become candidates by that.
    pub fn serve(&mut self, mut heap: Heap) {
        // SAFETY: with C, all nodes that are in the heap are this session's: they sleep at cells
        // with COMPLEX, or at cells that it has locked. They are alive because they have not been
        // told.
        unsafe {
            while let Some(node) = heap.pop() {
                let ops = (*node).ops();
                let (at, ticket, next, was_cursor) =
                    (*node).links(|links| (links.at, links.ticket, links.next, mem::take(&mut links.cursor)));
                let index = ops[at].index;
                match self.evaluate(ops, ticket) {
                    Err(Stopped { at: now, why: Stop::Blocks }) if !ops[now].no_wait => {
                        if now != at {
                            self.move_on(node, now, &mut heap);
                        }
                    }
                    Err(stopped) => self.end(node, stopped.outcome(), &mut heap),
                    Ok(()) => {
                        self.end(node, Outcome::Done, &mut heap);
                        self.performed(ops, &mut heap);
                    }
                }
                if was_cursor {
                    self.put_cursor(index, next, &mut heap);
                }
            }
        }
    }

    /// Finds candidates after `ops` were performed.
    fn performed(&mut self, ops: &[Op], heap: &mut Heap) {
        for op in ops.iter().filter(|op| op.alters()) {
            self.changed(op.index, op.action == Action::Add, heap);
        }
    }

    /// Finds candidates after the value of a cell has changed, and it may be greater than it was if
    /// it `grew`.
    pub fn changed(&mut self, index: u32, grew: bool, heap: &mut Heap) {
        let cell = &self.array.cells[index as usize];
        // SAFETY: the session has C and the cell, so what is queued or watches is its own, and
        // alive.
        unsafe {
            let (watching, oldest) =
                cell.inside(|inside| (inside.watches.iter(), inside.subtractions.oldest));
            watching.for_each(|node| heap.push(node));
            if grew {
                self.put_cursor(index, oldest, heap);
            }
            if self.value(index) == 0 {
                self.wake_others(index, heap);
            }
        }
    }

    /// Makes a candidate of `node`, which stands for all behind it, unless the value is zero.
    ///
    /// # Safety
    /// The node is null, or in the queue of subtractions of the cell, which the session has with
    /// `C`.
    pub(super) unsafe fn put_cursor(&mut self, index: u32, node: *const Node, heap: &mut Heap) {
        if !node.is_null() && self.value(index) != 0 {
            // SAFETY: as the caller says.
            unsafe {
                (*node).links(|links| links.cursor = true);
                heap.push(node);
            }
        }
    }

    /// Makes candidates of those who stop at the cell and not at a subtraction.
    ///
    /// # Safety
    /// The session has `C` and the cell.
    pub(super) unsafe fn wake_others(&mut self, index: u32, heap: &mut Heap) {
        // SAFETY: as the caller says.
        unsafe {
            let waiting = self.array.cells[index as usize].inside(|inside| inside.others.iter());
            waiting.for_each(|node| heap.push(node));
        }
    }

    /// Puts a new node in the queue of the operation at which it stops.
    ///
    /// # Safety
    /// The node is new, has a ticket that is the greatest, and lives until it is told or taken out;
    /// its cells up to `at` are locked; a complex one needs `C` and has watches.
    pub unsafe fn enqueue(&mut self, node: *const Node, at: usize, complex: bool) {
        // SAFETY: as the caller says.
        unsafe {
            (*node).links(|links| (links.at, links.complex) = (at, complex));
            let op = &(*node).ops()[at];
            self.array.cells[op.index as usize].inside(|inside| inside.enqueue(node, op, complex));
            self.watch(node, 0..at, true);
        }
    }

    /// Moves a complex node to the operation at which it stops `now`. It keeps its age.
    ///
    /// # Safety
    /// As `serve`.
    unsafe fn move_on(&mut self, node: *const Node, now: usize, heap: &mut Heap) {
        // SAFETY: with C the node is this session's; its cells up to where it was are locked here,
        // up to where it is now by its evaluation.
        unsafe {
            let was = self.lock_as_far(node);
            let op = &(*node).ops()[now];
            self.take_out(node);
            (*node).links(|links| links.at = now);
            self.array.cells[op.index as usize].inside(|inside| inside.enqueue(node, op, true));
            self.watch(node, was..now, true);
            self.watch(node, now..was, false);
            if self.is_oldest_aged(node) {
                // What takes from it and what gives to it has changed.
                self.aged_left(node, 0..was.max(now) + 1, heap);
            }
        }
    }

    /// Takes a node out of its queue to tell it `outcome`.
    ///
    /// # Safety
    /// As `serve`.
    pub unsafe fn end(&mut self, node: *const Node, outcome: Outcome, heap: &mut Heap) {
        // SAFETY: as the caller says.
        unsafe {
            self.leave(node, heap);
            self.will_complete(node, outcome);
        }
    }

    /// Takes a node out of its queue, from where it watches, and from the elders.
    ///
    /// # Safety
    /// As `serve`.
    pub unsafe fn leave(&mut self, node: *const Node, heap: &mut Heap) {
        // SAFETY: with C the node is this session's, and its cells as far as it has got are locked.
        unsafe {
            let at = self.lock_as_far(node);
            let was_eldest = self.is_oldest_aged(node);
            self.take_out(node);
            self.watch(node, 0..at, false);
            self.array.array_lock.remove_aged(node);
            if was_eldest {
                self.aged_left(node, 0..at + 1, heap);
            }
        }
    }

    /// Locks the cells of a node as far as it has got; returns how far that is.
    ///
    /// # Safety
    /// As `serve`.
    pub(super) unsafe fn lock_as_far(&mut self, node: *const Node) -> usize {
        // SAFETY: with C the node is this session's.
        let (ops, at) = unsafe { ((*node).ops(), (*node).links(|links| links.at)) };
        for op in &ops[..=at] {
            let open = self.lock(op.index);
            debug_assert!(open, "a closed array has no sleepers");
        }
        at
    }

    /// Links or unlinks the watches of the operations in `range`.
    ///
    /// # Safety
    /// The session has `C` and the cells of these operations; they are not linked, or linked,
    /// respectively.
    unsafe fn watch(&mut self, node: *const Node, range: Range<usize>, on: bool) {
        // SAFETY: a node that gets further than its first operation has a watch for each.
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
    /// What a sleeper is told that stopped so.
    pub fn outcome(self) -> Outcome {
        match self.why {
            Stop::Blocks => Outcome::WouldBlock,
            Stop::OutOfRange => Outcome::OutOfRange(self.at),
            Stop::Closed => Outcome::Closed,
        }
    }
}
