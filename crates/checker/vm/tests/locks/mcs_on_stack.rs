//! The lock of [`mcs`](super::mcs), with each node in the frame of the thread that waits.
//!
//! The words, the steps and the orderings are the same. What is new is that a node begins and ends:
//!
//! # Invariants
//! 1. A node is made by its owner and found by others through `tail` (T) or `next` (L) only: both
//!    publish it.
//! 2. After the grant (G) the node belongs to its owner, which may leave the frame at once: the
//!    granter uses the address of the word as the key of a wake-up, and the word no more.
//! 3. A holder leaves its frame only when no successor can link itself any more: it has freed
//!    `tail`, or has the link.

use super::Exclusive;
use super::mcs::{Bug, GRANTED, PARKED, WAITING, await_grant};
use std::ptr;
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicPtr, AtomicU32, spin_until};

struct Node {
    next: AtomicPtr<Node>,
    grant: AtomicU32,
}

pub struct McsOnStack {
    tail: AtomicPtr<Node>,
    bug: Option<Bug>,
}

impl McsOnStack {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { tail: AtomicPtr::new(ptr::null_mut()), bug }
    }

    fn lock(&self, node: &Node) {
        let name = ptr::from_ref(node).cast_mut();
        let before = self.tail.swap(name, Bug::swap(self.bug)); // (T)
        // SAFETY: each thread that was in the queue is there until it has been linked to, which is
        // what comes now (invariant 3).
        if let Some(before) = unsafe { before.as_ref() } {
            before.next.store(name, Bug::link(self.bug)); // (L)
            await_grant(&node.grant);
        }
    }

    fn unlock(&self, node: &Node) {
        let name = ptr::from_ref(node).cast_mut();
        let mut next = node.next.load(Acquire);
        if next.is_null() {
            if self.tail.compare_exchange(name, ptr::null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| {
                next = node.next.load(Acquire);
                !next.is_null()
            });
        }
        // SAFETY: the successor waits for its grant in the frame of its node (invariant 2).
        let grant = unsafe { &raw const (*next).grant };
        // SAFETY: as above; the reference ends with the expression.
        let mut before = unsafe { &*grant }.swap(GRANTED, Bug::grant(self.bug)); // (G)
        if self.bug == Some(Bug::TouchAfterGrant) {
            // SAFETY: there is none: this is the bug. The stack it points into stays mapped until
            // the run is over.
            before = before.max(unsafe { &*grant }.load(Relaxed));
        }
        if before == PARKED && self.bug != Some(Bug::NoWake) {
            futex::wake(grant.addr(), 1, u32::MAX, true);
        }
    }
}

impl Exclusive for McsOnStack {
    fn hold(&self, _: usize, section: impl FnOnce()) {
        let node = Node { next: AtomicPtr::new(ptr::null_mut()), grant: AtomicU32::new(WAITING) };
        self.lock(&node);
        section();
        self.unlock(&node);
    }
}
