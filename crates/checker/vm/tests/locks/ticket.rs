//! The ticket lock (Reed & Kanodia 1979; Mellor-Crummey & Scott 1991), spinning.
//!
//! # State
//! `next` is the ticket for the next arrival, `serving` the ticket of the holder; equal: free.
//!
//! # Invariants
//! 1. No two threads have the same ticket: a ticket is taken by one read-modify-write.
//! 2. Only the holder writes `serving`.
//!
//! # Ordering
//! The look at `serving` that ends the wait is Acquire and pairs with the Release store of the
//! holder before.

use super::Exclusive;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, spin_until};

/// What is wrong with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The end of the wait orders nothing.
    RelaxedExit,
    /// The release publishes nothing.
    RelaxedRelease,
    /// A ticket is taken by a load and a store: two may have the same (invariant 1).
    LostTicket,
    /// A waiter that finds others before it moves `serving` on, as if the holder were gone
    /// (invariant 2).
    ServedByAWaiter,
}

pub struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
    bug: Option<Bug>,
}

impl Ticket {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0), bug }
    }

    fn lock(&self) {
        let ticket = if self.bug == Some(Bug::LostTicket) {
            let ticket = self.next.load(Relaxed);
            self.next.store(ticket + 1, Relaxed);
            ticket
        } else {
            self.next.fetch_add(1, Relaxed)
        };
        let acquire = if self.bug == Some(Bug::RelaxedExit) { Relaxed } else { Acquire };
        if self.bug == Some(Bug::ServedByAWaiter) && self.serving.load(Relaxed) + 1 == ticket {
            self.serving.fetch_add(1, Relaxed);
        }
        spin_until(|| self.serving.load(acquire) == ticket);
    }

    fn unlock(&self) {
        let release = if self.bug == Some(Bug::RelaxedRelease) { Relaxed } else { Release };
        let mine = self.serving.load(Relaxed);
        self.serving.store(mine + 1, release);
    }
}

impl Exclusive for Ticket {
    fn hold(&self, _: usize, section: impl FnOnce()) {
        self.lock();
        section();
        self.unlock();
    }
}
