//! Two probes: a queue lock whose waiters spin for a hundred pauses, then park; and one whose
//! waiters spin for as long as it takes, for no more threads than CPUs. Strict first in, first out.
//!
//! The queue is that of Mellor-Crummey and Scott, in the form of the K42 kernel: a node is on the
//! stack of its waiter, and a waiter that gets the lock moves the head of the queue behind it into
//! the lock, so that holding needs no node. The release grants the lock to the first in the queue,
//! and wakes that one if it is parked. What a fair mutex is without wake-ahead: each hand-over to a
//! parked waiter costs its wake-up.
//!
//! | `tail` | `head` | meaning |
//! |---|---|---|
//! | null | any | free |
//! | [`HELD`] | null | held, no thread waits |
//! | a node | the first node, or null for a moment | held, or granted to a waiter that is not back yet |
//!
//! An arrival makes itself the tail, then links itself to the node before it, or to the lock if
//! that was `HELD`. In between the queue has a gap; a thread that needs to pass it spins, and
//! yields if it lasts.
//!
//! For threads of one process. Not one of the family: it is compared with, not offered.

use super::wait_wake::futex;
use super::{Held, Lock, Scope};
use anyhow::Result;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Rel};
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// Pauses before a waiter parks.
const PAUSES: u32 = 100;

/// The tail of a lock that is held and that no thread waits for; not an address.
const HELD: *mut Node = ptr::without_provenance_mut(1);

/// States of a node.
const WAITING: u32 = 0;
const PARKED: u32 = 1;
const GRANTED: u32 = 2;

/// A waiter.
#[derive(Debug)]
struct Node {
    next: AtomicPtr<Node>,
    state: AtomicU32,
}

/// The lock, whose waiters park after a while if `PARKS`.
#[derive(Debug)]
pub struct Mcs<const PARKS: bool> {
    tail: AtomicPtr<Node>,
    head: AtomicPtr<Node>,
}

impl<const PARKS: bool> Mcs<PARKS> {
    fn take_free(&self) -> bool {
        self.tail.compare_exchange(ptr::null_mut(), HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let node = Node { next: AtomicPtr::new(ptr::null_mut()), state: AtomicU32::new(WAITING) };
        let me = ptr::from_ref(&node).cast_mut();
        let mut tail = self.tail.load(Relaxed);
        loop {
            if tail.is_null() {
                if self.take_free() {
                    return;
                }
                tail = self.tail.load(Relaxed);
                continue;
            }
            match self.tail.compare_exchange_weak(tail, me, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => tail = now,
            }
        }
        let link = if tail == HELD {
            &self.head
        } else {
            // SAFETY: it was the tail when this node took its place, so its waiter leaves only
            // after it has seen this link.
            unsafe { &(*tail).next }
        };
        link.store(me, Rel);
        node.until_granted(PARKS);

        // The lock is this waiter's; what is behind its node goes into the lock.
        let mut next = node.next.load(Acquire);
        if next.is_null() {
            self.head.store(ptr::null_mut(), Relaxed);
            if self.tail.compare_exchange(me, HELD, AcqRel, Relaxed).is_ok() {
                return;
            }
            next = linked(&node.next);
        }
        self.head.store(next, Relaxed);
    }
}

impl Node {
    fn until_granted(&self, parks: bool) {
        for looks in 0_u64.. {
            if self.state.load(Acquire) == GRANTED {
                return;
            }
            if !parks || looks < u64::from(PAUSES) {
                std::hint::spin_loop();
            } else if self.state.compare_exchange(WAITING, PARKED, Acquire, Acquire) != Err(GRANTED) {
                futex(self.state.as_ptr(), libc::FUTEX_WAIT, PARKED);
            }
        }
    }
}

/// What is stored in `link` as soon as the thread that is about to link its node has done so.
fn linked(link: &AtomicPtr<Node>) -> *mut Node {
    let mut looks = 0;
    loop {
        let node = link.load(Acquire);
        if !node.is_null() {
            return node;
        }
        looks += 1;
        if looks < PAUSES { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

impl<const PARKS: bool> Lock for Mcs<PARKS> {
    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self { tail: AtomicPtr::default(), head: AtomicPtr::default() });
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        if !self.take_free() {
            if !wait {
                return None;
            }
            self.wait();
        }
        Some(Held(self))
    }

    #[inline]
    fn release(&self) {
        let mut first = self.head.load(Acquire);
        if first.is_null() {
            if self.tail.compare_exchange(HELD, ptr::null_mut(), Rel, Relaxed).is_ok() {
                return;
            }
            first = linked(&self.head);
        }
        // SAFETY: its waiter leaves only after the grant. From then on only the address of the word
        // is used.
        let (state, address) = unsafe {
            let state = &(*first).state;
            (state.swap(GRANTED, AcqRel), state.as_ptr())
        };
        if state == PARKED {
            futex(address, libc::FUTEX_WAKE, 1);
        }
    }
}
