//! A queue of nodes that live on their owners' stacks: anybody pushes, one thread at a time
//! unlinks.
//!
//! # Shape
//! ```text
//!   Queue.top ─▶ newest ──older──▶ node ──older──▶ oldest
//!                       ◀──newer──      ◀──newer──
//!                newest ─────────────oldest───────▶
//! ```
//! A push writes `older` and swings `top`, as on a Treiber stack. The links back, and the shortcut
//! to the oldest, are added later by whoever unlinks: it goes down from the top to the first node
//! that has the shortcut, which is the top as it was the last time, so each node is walked over
//! once.
//!
//! # Invariants
//! 1. A node is alive as long as it is linked: its owner waits for a word about it, which is said
//!    after the unlinking.
//! 2. Links of nodes that are in the queue are touched by the one who may unlink, after it has read
//!    `top` with Acquire. Before that they are the owner's, and after the unlinking the unlinker's,
//!    also when another may unlink by then.
//! 3. From `top` down along `older`, the first node with a shortcut has the right one. It was the
//!    top at the last walk, or inherited from that; and when it is unlinked, the shortcut goes to
//!    its neighbour.
//!
//! A pusher may find the address in `top` that it has read before although the node there is
//! another one: what it links to is then that other node, which is the right one. It never looks
//! inside.
//!
//! # Ordering
//! (Q1) a push is Release, (Q2) a look at `top` is Acquire: a thread that finds a node finds its
//! links. All changes of `top` are read-modify-writes and continue the pushes before them, also
//! that of an unlinking thread, which is Relaxed: it removes a node that (Q2) has found, and its
//! links go to the next unlinking thread by other ways. What makes sure that a pushed node is
//! looked for is not here.
//!
//! # Sources
//! The standard library's `rwlock/queue.rs` (J. Wunder, 2023), and usync, for the lazily made
//! links; there the word has the lock bits too, here it has nothing but the queue.

use core::ptr;
use ulocks_core::futex::{self, Futex};
use ulocks_core::meter::Meter;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, UnsafeCell};

/// A waiter's place in the line, on its stack.
pub(super) struct Node {
    /// How many permits it waits for.
    pub wanted: u32,
    /// What is said to its owner; the values are the protocol's.
    pub status: Futex<futex::Private>,
    links: UnsafeCell<Links>,
    /// Whether it is in the queue. Apart from the links, because it outlives them: who may unlink
    /// may ask.
    linked: UnsafeCell<bool>,
}

#[derive(Clone, Copy)]
struct Links {
    older: *const Node,
    newer: *const Node,
    oldest: *const Node,
    /// The next one of those that have left together with this one.
    departs: *const Node,
}

impl Node {
    pub fn new(wanted: u32) -> Self {
        let links =
            Links { older: ptr::null(), newer: ptr::null(), oldest: ptr::null(), departs: ptr::null() };
        Self { wanted, status: Futex::new(0), links: UnsafeCell::new(links), linked: UnsafeCell::new(true) }
    }

    /// The links of `node`.
    ///
    /// # Safety
    /// `node` is alive and the caller may touch its links (invariants 1 and 2).
    unsafe fn links<R>(node: *const Self, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: the node is alive.
        let links = unsafe { &(*node).links };
        // SAFETY: nobody else touches the links meanwhile, and `f`, which is in this file, touches
        // no others.
        links.with_mut(|links| f(unsafe { &mut *links }))
    }
}

/// The queue: the newest node, or null.
#[repr(transparent)]
pub(super) struct Queue {
    top: AtomicPtr<Node>,
}

impl Queue {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self { top: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Whether a node is in the queue.
    pub fn is_used(&self) -> bool {
        !self.top.load(Relaxed).is_null()
    }

    /// Appends `node`, an arrival for `meter`.
    ///
    /// # Safety
    /// The caller owns `node`, which is in no queue, and lets it live, where it is, until it was
    /// unlinked.
    pub unsafe fn push(&self, node: *const Node, meter: &impl Meter) {
        let mut top = self.top.load(Relaxed);
        loop {
            // SAFETY: not in the queue yet, so its links are the caller's.
            unsafe {
                Node::links(node, |links| {
                    links.older = top;
                    links.oldest = if top.is_null() { node } else { ptr::null() };
                });
            }
            // (Q1)
            let attempt = || self.top.compare_exchange(top, node.cast_mut(), Release, Relaxed);
            match meter.arrive(attempt) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// The newest node, with all links and the shortcut made; null if the queue is empty.
    ///
    /// # Safety
    /// The caller alone may unlink.
    unsafe fn linked_top(&self) -> *const Node {
        let top = self.top.load(Acquire).cast_const(); // (Q2)
        if top.is_null() {
            return top;
        }
        let mut node = top;
        // SAFETY: invariants 1 and 2, for each node: they are all in the queue.
        unsafe {
            let oldest = loop {
                let links = Node::links(node, |links| *links);
                if !links.oldest.is_null() {
                    break links.oldest;
                }
                Node::links(links.older, |older| older.newer = node);
                node = links.older;
            };
            Node::links(top, |links| links.oldest = oldest);
        }
        top
    }

    /// The oldest node, or null.
    ///
    /// # Safety
    /// The caller alone may unlink.
    pub unsafe fn oldest(&self) -> *const Node {
        // SAFETY: the caller's promise; a node from the queue is alive.
        unsafe {
            let top = self.linked_top();
            if top.is_null() { top } else { Node::links(top, |links| links.oldest) }
        }
    }

    /// The node that came after `node`, or null.
    ///
    /// # Safety
    /// The caller alone may unlink, has called [`oldest`](Self::oldest), and `node` is in the
    /// queue.
    pub unsafe fn newer(&self, node: *const Node) -> *const Node {
        // SAFETY: the caller's promise.
        unsafe { Node::links(node, |links| links.newer) }
    }

    /// Takes `node` out, if it is in the queue still; then its links are the caller's from then on.
    ///
    /// # Safety
    /// The caller alone may unlink; `node` is alive and was pushed.
    pub unsafe fn unlink(&self, node: *const Node) -> bool {
        // SAFETY: the caller's promise for `node`; the others are in the queue (invariants 1 and
        // 2).
        unsafe {
            if !(*node).linked.with_mut(|linked| linked.replace(false)) {
                return false;
            }
            let mut top = self.linked_top();
            if top == node {
                let Links { older, oldest, .. } = Node::links(node, |links| *links);
                // Relaxed: a read-modify-write, so the pushes below stay published.
                if self.top.compare_exchange(top.cast_mut(), older.cast_mut(), Relaxed, Relaxed).is_ok() {
                    if !older.is_null() {
                        Node::links(older, |links| {
                            links.newer = ptr::null();
                            links.oldest = oldest; // invariant 3
                        });
                    }
                    return true;
                }
                // Something newer was pushed, and links to this node.
                top = self.linked_top();
            }
            let Links { older, newer, .. } = Node::links(node, |links| *links);
            Node::links(newer, |links| links.older = older);
            if older.is_null() {
                Node::links(top, |links| links.oldest = newer);
            } else {
                Node::links(older, |links| links.newer = newer);
            }
            true
        }
    }
}

/// Nodes that were unlinked and whose owners have not been told, in the order of their unlinking.
pub(super) struct Departures {
    first: *const Node,
    last: *const Node,
}

impl Departures {
    pub fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    /// Adds `node`.
    ///
    /// # Safety
    /// The caller has unlinked it, and lets its owner wait on.
    pub unsafe fn push(&mut self, node: *const Node) {
        if self.first.is_null() {
            self.first = node;
        } else {
            // SAFETY: the last one was unlinked by the caller too, and its owner waits on.
            unsafe { Node::links(self.last, |links| links.departs = node) };
        }
        self.last = node;
    }

    /// Calls `tell` with each node. It may be gone when `tell` has said the word to its owner.
    pub fn tell_each(self, mut tell: impl FnMut(*const Node)) {
        let mut node = self.first;
        while !node.is_null() {
            // SAFETY: by the contract of `push` it is alive until it is told, and its links are the
            // caller's.
            let next = unsafe { Node::links(node, |links| links.departs) };
            tell(node);
            node = next;
        }
    }
}
