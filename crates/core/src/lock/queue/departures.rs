//! Nodes that a queue-lock holder has detached, and answers after it has released the queue lock.

use super::{Kind, Node};
use core::mem;
use core::ptr;

/// Nodes that were detached and not answered yet, in the order of their detaching.
pub struct Departures {
    first: *const Node,
    last: *const Node,
}

impl Departures {
    /// None.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    /// Adds `node`.
    ///
    /// # Safety
    /// The caller has detached it, and answers it by this list only.
    pub unsafe fn push(&mut self, node: *const Node) {
        if self.first.is_null() {
            self.first = node;
        } else {
            // SAFETY: the caller detached the last one too, and has not answered it.
            unsafe { Node::links(self.last, |links| links.departs = node) };
        }
        self.last = node;
    }

    /// Takes the first node off the list.
    pub(super) fn pop(&mut self) -> Option<*const Node> {
        let first = self.first;
        if first.is_null() {
            return None;
        }
        // SAFETY: by the contract of `push` it is alive until its answer, and its links are the
        // caller's.
        self.first = unsafe { Node::links(first, |links| mem::replace(&mut links.departs, ptr::null())) };
        Some(first)
    }

    /// Answers `kind` to each node, and wakes its thread.
    pub fn answer_each(mut self, kind: Kind) {
        while let Some(node) = self.pop() {
            // SAFETY: by the contract of `push` it has no answer yet.
            unsafe { Node::answer(node, kind) }.map(|key| key.wake(1));
        }
    }
}
