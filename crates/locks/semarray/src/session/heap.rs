//! The candidates of a cascade, the one to be served first on top: a pairing heap (Fredman,
//! Sedgewick, Sleator, Tarjan 1986). It is linked through the nodes themselves, so a cascade
//! allocates nothing.

use crate::node::Node;
use core::ptr;

/// Lives in one cascade, whose session has all that guards the nodes in it.
pub(crate) struct Heap {
    top: *const Node,
}

impl Heap {
    pub const fn new() -> Self {
        Self { top: ptr::null() }
    }

    /// Adds `node`, unless it is in the heap already.
    ///
    /// # Safety
    /// The node is alive until it is taken out, and the caller has what guards its links.
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

    /// Takes out the node that is served first.
    ///
    /// # Safety
    /// The caller has what guards the links of all nodes in the heap.
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

/// Makes one heap of two.
///
/// # Safety
/// Both are heaps, and the caller has what guards their nodes.
unsafe fn meld(a: *const Node, b: *const Node) -> *const Node {
    if a.is_null() || b.is_null() {
        return if a.is_null() { b } else { a };
    }
    // SAFETY: neither is null, and the caller has what guards them.
    unsafe {
        let (parent, child) = if (*b).goes_before(&*a) { (b, a) } else { (a, b) };
        let others = (*parent).links(|links| core::mem::replace(&mut links.child, child));
        (*child).links(|links| links.sibling = others);
        parent
    }
}

/// Makes one heap of siblings: pairs from left to right, then all pairs from right to left.
///
/// # Safety
/// As `meld`.
unsafe fn meld_all(mut siblings: *const Node) -> *const Node {
    let mut pairs: *const Node = ptr::null();
    // SAFETY: a node's sibling is null, or the caller has what guards it.
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
