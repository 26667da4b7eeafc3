//! Sleepers that may be able to proceed, the one to be served first on top: a pairing heap
//! (Fredman, Sedgewick, Sleator, Tarjan 1986), linked through the nodes themselves, so that a
//! cascade allocates nothing.

use crate::node::Node;
use core::ptr;

/// Lives in one cascade, whose thread has all that guards the nodes in it.
pub(crate) struct Heap {
    top: *const Node,
}

impl Heap {
    pub const fn new() -> Self {
        Self { top: ptr::null() }
    }

    /// Puts `node` in, if it is not in already.
    ///
    /// # Safety
    /// The node is alive until it is taken out, and its links are the caller's.
    pub unsafe fn push(&mut self, node: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            let is_in = (*node).links(|links| core::mem::replace(&mut links.in_heap, true));
            if !is_in {
                (*node).links(|links| links.child = ptr::null());
                self.top = meld(self.top, node);
            }
        }
    }

    /// Takes the first out.
    ///
    /// # Safety
    /// The links of all nodes in the heap are the caller's.
    pub unsafe fn pop(&mut self) -> Option<*const Node> {
        let top = self.top;
        if top.is_null() {
            return None;
        }
        // SAFETY: as the caller says.
        unsafe {
            let children = (*top).links(|links| {
                links.in_heap = false;
                links.child
            });
            self.top = meld_all(children);
        }
        Some(top)
    }
}

/// One heap of two.
///
/// # Safety
/// Both are heaps whose nodes are the caller's.
unsafe fn meld(a: *const Node, b: *const Node) -> *const Node {
    if a.is_null() || b.is_null() {
        return if a.is_null() { b } else { a };
    }
    // SAFETY: neither is null, and both are the caller's.
    unsafe {
        let (parent, child) = if (*b).goes_before(&*a) { (b, a) } else { (a, b) };
        let others = (*parent).links(|links| core::mem::replace(&mut links.child, child));
        (*child).links(|links| links.sibling = others);
        parent
    }
}

/// One heap of siblings: pairs from left to right, then all of them from right to left.
///
/// # Safety
/// As `meld`.
unsafe fn meld_all(mut siblings: *const Node) -> *const Node {
    let mut pairs: *const Node = ptr::null();
    // SAFETY: a node's sibling is null or one of the caller's.
    unsafe {
        let cut =
            |node: *const Node| (*node).links(|links| core::mem::replace(&mut links.sibling, ptr::null()));
        while !siblings.is_null() {
            let (a, b) = (siblings, cut(siblings));
            siblings = if b.is_null() { b } else { cut(b) };
            let pair = meld(a, b);
            (*pair).links(|links| links.sibling = pairs);
            pairs = pair;
        }
        let mut all = ptr::null();
        while !pairs.is_null() {
            let next = cut(pairs);
            all = meld(all, pairs);
            pairs = next;
        }
        all
    }
}
