//! The parking lot of the model worlds: one queue for all addresses under one lock, as if all
//! addresses fell into one bucket of the real table. It is made of the world's own futexes and
//! cells. So a model explores the orders in which threads pass through it, and would find a race in
//! it.

use super::Parked;
use crate::sys::futex::{Futex, Local, Waited};
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::sync::UnsafeCell;
use crate::sys::time::Deadline;
use std::collections::VecDeque;

/// A thread in the queue, or just dequeued. It lies on that thread's stack: once `status` has
/// changed, it may be gone.
struct Node {
    key: usize,
    status: Futex<Local>,
}

// `Node::status`.
const PARKED: u32 = 0;
const UNPARKED: u32 = 1;
const UNPARKED_FROM_OTHERS: u32 = 2;

struct Lot {
    lock: Futex<Local>,
    /// Longest waiter first.
    queue: UnsafeCell<VecDeque<*const Node>>,
}

// `Lot::lock`: Drepper's mutex.
const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

// SAFETY: the queue is accessed under the lock only, and so are the nodes in it, which are `Sync`.
unsafe impl Sync for Lot {}
// SAFETY: as above.
unsafe impl Send for Lot {}

crate::sync_static! {
    static LOT: Lot = Lot { lock: Futex::new(UNLOCKED), queue: UnsafeCell::new(VecDeque::new()) };
}

/// Makes the parking lot of this execution before the first thread starts. Later, its making would
/// order threads.
#[cfg(world = "loom")]
pub(crate) fn boot() {
    let _: &Lot = &LOT;
}

impl Lot {
    /// Runs `visit` with the queue, under the lock.
    fn locked<R>(&self, visit: impl FnOnce(&mut VecDeque<*const Node>) -> R) -> R {
        if self.lock.compare_exchange(UNLOCKED, LOCKED, Acquire, Relaxed).is_err() {
            while self.lock.swap(CONTENDED, Acquire) != UNLOCKED {
                self.lock.wait(CONTENDED, None);
            }
        }
        // SAFETY: this thread has the lock.
        let result = self.queue.with_mut(|queue| visit(unsafe { &mut *queue }));
        if self.lock.swap(UNLOCKED, Release) == CONTENDED {
            self.lock.key().wake(1);
        }
        result
    }
}

/// # Safety
/// As [`ParkKey::park`](super::ParkKey::park).
pub(crate) unsafe fn park(key: usize, still: impl FnOnce() -> bool, deadline: Option<Deadline>) -> Parked {
    let node = Node { key, status: Futex::new(PARKED) };
    let queued = LOT.locked(|queue| {
        let still = still();
        if still {
            queue.push_back(&raw const node);
        }
        still
    });
    if !queued {
        return Parked::Refused;
    }
    loop {
        match node.status.load(Acquire) {
            PARKED => {}
            status => return Parked::Unparked { others: status == UNPARKED_FROM_OTHERS },
        }
        // As on the machine, no handler ends a park.
        if node.status.wait(PARKED, deadline.map(Deadline::plain)) == Waited::TimedOut {
            let left = LOT.locked(|queue| {
                let nth = queue.iter().position(|&other| core::ptr::eq(other, &raw const node));
                nth.map(|nth| queue.remove(nth)).is_some()
            });
            if left {
                return Parked::TimedOut;
            }
        }
    }
}

pub(crate) fn unpark_one(key: usize) {
    let status = LOT.locked(|queue| {
        // SAFETY: a thread in the queue is in `park`. It leaves that only under the lock, or when
        // its status has changed.
        let is_there = |&node: &*const Node| unsafe { (*node).key } == key;
        let nth = queue.iter().position(is_there)?;
        let node = queue.remove(nth)?;
        let unparked = if queue.iter().any(is_there) { UNPARKED_FROM_OTHERS } else { UNPARKED };
        // SAFETY: as above, until the status changes.
        let status = unsafe { &(*node).status };
        let name = status.key();
        status.swap(unparked, Release);
        Some(name)
    });
    if let Some(status) = status {
        status.wake(1);
    }
}
