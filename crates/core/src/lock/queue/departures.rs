//! The nodes that a queue-lock holder has detached, and answers after (unlock queue). Those of the
//! waiters that leave are among them.

use super::wake::Wakers;
use super::{Kind, Newest, Node, Status, complete, detach_from, forget_inside};
use crate::sys::sync::Ordering::Relaxed;
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

    /// Answers `kind` to each node, and wakes its thread. The wakers of tasks are added to `tasks`.
    pub fn answer_each(mut self, kind: Kind, tasks: &mut Wakers) {
        while let Some(node) = self.pop() {
            // SAFETY: by the contract of `push` it has no answer yet.
            tasks.add(unsafe { Node::answer(node, kind) });
        }
    }
}

/// Detaches each node whose waiter is `Leaving`, for the answer `Removed`; returns how many.
///
/// # Safety
/// The caller is the queue-lock holder, and answers `gone`.
#[cold]
pub unsafe fn remove_leavers(word: &mut impl Newest, gone: &mut Departures) -> u32 {
    let newest = word.newest();
    if newest.is_null() {
        return 0;
    }
    // SAFETY: this thread holds the queue lock.
    let oldest = unsafe { complete(word, newest) };
    let (mut node, mut count) = (newest, 0);
    loop {
        // SAFETY: queued nodes are alive and their links are the caller's. A node may be claimed
        // already, by this thread only (invariant 5).
        unsafe {
            let older = Node::links(node, |links| links.older);
            let leaves = Status((*node).status.load(Relaxed)).is(Kind::Leaving);
            if leaves {
                Node::claim(node);
                detach_from(word, node);
                gone.push(node);
                count += 1;
            }
            if node == oldest {
                break;
            }
            node = older;
        }
    }
    forget_inside(word);
    count
}
