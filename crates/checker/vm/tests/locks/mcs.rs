//! The queue lock of Mellor-Crummey and Scott (TOCS 1991), with waiters that park. Nodes in an
//! array, one for each thread, used again and again.
//!
//! # State
//! `tail` names the last node of the queue, as its index plus one; 0 is a free lock. A node has
//!
//! | word | meaning |
//! |---|---|
//! | `next` | the node behind, as its index plus one; 0: not known yet |
//! | `grant` | `GRANTED`, `WAITING`, or `PARKED`: its owner sleeps or is about to |
//!
//! # Invariants
//! 1. The owner writes its node before it is in the queue (N), its predecessor only after it has
//!    found it by `next`.
//! 2. Exactly one store links each node (L), exactly one swap grants it (G).
//!
//! # Ordering
//! - (T) the swap of `tail`: its Release publishes (N), so that the successor's (L) comes after the
//!   `next = 0` of (N); its Acquire pairs with the Release of the exchange in `unlock` that frees
//!   the lock.
//! - (L) Release, read by the predecessor's Acquire load of `next`: so that (G) comes after the
//!   `grant = WAITING` of (N). If it is Relaxed, the grant may be overwritten by what was stored
//!   before it, and the waiter sleeps for ever. loom and Miri let a read-modify-write see only the
//!   newest store, and cannot show this.
//! - (G) Release, read by the waiter's Acquire.

use super::Exclusive;
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, spin_until};

pub const GRANTED: u32 = 0;
pub const WAITING: u32 = 1;
pub const PARKED: u32 = 2;

/// What is wrong with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// (T) orders nothing.
    RelaxedSwap,
    /// (T) does not publish the node.
    SwapWithoutRelease,
    /// (T) does not see what the last holder did.
    SwapWithoutAcquire,
    /// (L) does not publish the node.
    RelaxedLink,
    /// (G) does not publish what the holder did.
    RelaxedGrant,
    /// The grant wakes no thread.
    NoWake,
    /// The holder looks at the node's word once more after the grant. Seen only if the node ends
    /// with its owner's wait.
    TouchAfterGrant,
}

impl Bug {
    /// The ordering of (T).
    pub fn swap(bug: Option<Self>) -> Ordering {
        match bug {
            Some(Self::RelaxedSwap) => Relaxed,
            Some(Self::SwapWithoutRelease) => Acquire,
            Some(Self::SwapWithoutAcquire) => Release,
            _ => AcqRel,
        }
    }

    /// The ordering of (L).
    pub fn link(bug: Option<Self>) -> Ordering {
        if bug == Some(Self::RelaxedLink) { Relaxed } else { Release }
    }

    /// The ordering of (G).
    pub fn grant(bug: Option<Self>) -> Ordering {
        if bug == Some(Self::RelaxedGrant) { Relaxed } else { Release }
    }
}

/// Sleeps until `grant` is given.
pub fn await_grant(grant: &AtomicU32) {
    while grant.load(Acquire) != GRANTED {
        // If this fails the word is PARKED, from a sleep that ended for no reason, or granted.
        match grant.compare_exchange(WAITING, PARKED, Relaxed, Acquire) {
            Err(GRANTED) => return,
            _ => futex::wait(grant, PARKED, u32::MAX, None, true),
        };
    }
}

struct Node {
    next: AtomicU32,
    grant: AtomicU32,
}

pub struct Mcs {
    tail: AtomicU32,
    nodes: Box<[Node]>,
    bug: Option<Bug>,
}

impl Mcs {
    /// A lock for threads with the numbers below `threads`.
    pub fn new(threads: usize, bug: Option<Bug>) -> Self {
        let node = |_| Node { next: AtomicU32::new(0), grant: AtomicU32::new(GRANTED) };
        Self { tail: AtomicU32::new(0), nodes: (0..threads).map(node).collect(), bug }
    }

    fn lock(&self, me: usize) {
        let node = &self.nodes[me];
        let name = me as u32 + 1;
        node.next.store(0, Relaxed); // (N)
        node.grant.store(WAITING, Relaxed); // (N)
        let before = self.tail.swap(name, Bug::swap(self.bug)); // (T)
        if before == 0 {
            return;
        }
        self.nodes[before as usize - 1].next.store(name, Bug::link(self.bug)); // (L)
        await_grant(&node.grant);
    }

    fn unlock(&self, me: usize) {
        let node = &self.nodes[me];
        let mut next = node.next.load(Acquire);
        if next == 0 {
            if self.tail.compare_exchange(me as u32 + 1, 0, Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| {
                next = node.next.load(Acquire);
                next != 0
            });
        }
        let grant = &self.nodes[next as usize - 1].grant;
        let before = grant.swap(GRANTED, Bug::grant(self.bug)); // (G)
        if before == PARKED && self.bug != Some(Bug::NoWake) {
            futex::wake((&raw const *grant).addr(), 1, u32::MAX, true);
        }
    }
}

impl Exclusive for Mcs {
    fn hold(&self, thread: usize, section: impl FnOnce()) {
        self.lock(thread);
        section();
        self.unlock(thread);
    }
}
