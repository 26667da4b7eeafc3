//! A bounded queue for one producer and one consumer (Lamport 1977), the shape in which most
//! publication bugs are made.
//!
//! # State
//! `pushed` and `popped` count; only the producer writes the one, only the consumer the other.
//! Value n is in slot n mod the capacity from its push to its pop.
//!
//! # Ordering
//! - (P) the store of `pushed`, Release, pairs with the consumer's Acquire load of it: the value is
//!   there.
//! - (C) the store of `popped`, Release, pairs with the producer's Acquire load of it: the slot is
//!   free.

use std::sync::Arc;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicUsize, UnsafeCell, spin_until};

/// What is wrong with the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// (P) is Relaxed.
    RelaxedPush,
    /// The consumer's load of `pushed` is Relaxed.
    RelaxedLook,
    /// (C) is Relaxed.
    RelaxedPop,
    /// The producer's load of `popped` is Relaxed.
    RelaxedRoom,
    /// (P) comes before the value.
    EarlyPush,
    /// One slot too many is taken for free.
    OneTooMany,
}

pub struct Ring {
    pushed: AtomicUsize,
    popped: AtomicUsize,
    slots: Box<[UnsafeCell<u32>]>,
    bug: Option<Bug>,
}

// SAFETY: a slot is accessed by the producer between (C) and (P), and by the consumer between (P)
// and (C). Where a bug breaks that, the machine ends the run before the access.
unsafe impl Sync for Ring {}

impl Ring {
    pub fn new(capacity: usize, bug: Option<Bug>) -> Self {
        let slots = (0..capacity).map(|_| UnsafeCell::new(0)).collect();
        Self { pushed: AtomicUsize::new(0), popped: AtomicUsize::new(0), slots, bug }
    }

    fn relaxed_if(&self, bug: Bug, otherwise: ulocks_vm::sync::Ordering) -> ulocks_vm::sync::Ordering {
        if self.bug == Some(bug) { Relaxed } else { otherwise }
    }

    /// Appends `value`. False if the queue is full.
    pub fn push(&self, value: u32) -> bool {
        let pushed = self.pushed.load(Relaxed);
        let popped = self.popped.load(self.relaxed_if(Bug::RelaxedRoom, Acquire));
        if pushed - popped == self.slots.len() + usize::from(self.bug == Some(Bug::OneTooMany)) {
            return false;
        }
        let slot = &self.slots[pushed % self.slots.len()];
        // SAFETY: the slot is free.
        let write = || slot.with_mut(|slot| unsafe { slot.write(value) });
        if self.bug == Some(Bug::EarlyPush) {
            self.pushed.store(pushed + 1, Release);
            write();
        } else {
            write();
            self.pushed.store(pushed + 1, self.relaxed_if(Bug::RelaxedPush, Release)); // (P)
        }
        true
    }

    /// Removes the first value.
    pub fn pop(&self) -> Option<u32> {
        let popped = self.popped.load(Relaxed);
        if self.pushed.load(self.relaxed_if(Bug::RelaxedLook, Acquire)) == popped {
            return None;
        }
        // SAFETY: the slot is full.
        let value = self.slots[popped % self.slots.len()].with(|slot| unsafe { slot.read() });
        self.popped.store(popped + 1, self.relaxed_if(Bug::RelaxedPop, Release)); // (C)
        Some(value)
    }
}

/// One thread pushes `count` values, another pops them, in order.
pub fn passing(capacity: usize, count: u32, bug: Option<Bug>) -> impl Fn() + 'static {
    move || {
        let ring = Arc::new(Ring::new(capacity, bug));
        super::together(2, move |thread| {
            for value in 1..=count {
                if thread == 0 {
                    spin_until(|| ring.push(value));
                } else {
                    let mut popped = None;
                    spin_until(|| {
                        popped = ring.pop();
                        popped.is_some()
                    });
                    assert_eq!(popped, Some(value), "out of order");
                }
            }
        });
    }
}
