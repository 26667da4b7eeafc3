//! The parking lot of the model worlds: one queue for all addresses, under one lock, as if every
//! address fell into the same bucket of the real one. All of it is made of the world's own futexes
//! and cells, so the orders in which threads pass through it are explored, and a race in it would
//! be found.

use super::Parked;
use crate::sys::futex::{Futex, Private, Waited};
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::sync::UnsafeCell;
use crate::sys::time::Deadline;
use std::collections::VecDeque;

/// A thread in the queue, or just taken out of it. It lies on that thread's stack: once its bell
/// has rung, it may be gone.
struct Place {
    key: usize,
    bell: Futex<Private>,
}

// What a bell says.
const SILENT: u32 = 0;
const UNPARKED: u32 = 1;
const UNPARKED_FROM_OTHERS: u32 = 2;

struct Lot {
    gate: Futex<Private>,
    /// Longest waiter first.
    queue: UnsafeCell<VecDeque<*const Place>>,
}

// What the gate says: Drepper's mutex.
const OPEN: u32 = 0;
const CLOSED: u32 = 1;
const AWAITED: u32 = 2;

// SAFETY: the queue is accessed inside the gate only, and so are the places in it, which are
// `Sync`.
unsafe impl Sync for Lot {}
// SAFETY: as above.
unsafe impl Send for Lot {}

crate::sync_static! {
    static LOT: Lot = Lot { gate: Futex::new(OPEN), queue: UnsafeCell::new(VecDeque::new()) };
}

/// Brings the lot of this execution to life, before there are threads that its birth would put in
/// an order.
#[cfg(world = "loom")]
pub(crate) fn boot() {
    let _: &Lot = &LOT;
}

impl Lot {
    /// Runs `visit` alone with the queue.
    fn inside<R>(&self, visit: impl FnOnce(&mut VecDeque<*const Place>) -> R) -> R {
        if self.gate.compare_exchange(OPEN, CLOSED, Acquire, Relaxed).is_err() {
            while self.gate.swap(AWAITED, Acquire) != OPEN {
                self.gate.wait(AWAITED, None);
            }
        }
        // SAFETY: the gate is closed behind this thread.
        let result = self.queue.with_mut(|queue| visit(unsafe { &mut *queue }));
        if self.gate.swap(OPEN, Release) == AWAITED {
            self.gate.key().wake(1);
        }
        result
    }
}

pub(crate) fn park(key: usize, still: impl FnOnce() -> bool, deadline: Option<Deadline>) -> Parked {
    let place = Place { key, bell: Futex::new(SILENT) };
    let queued = LOT.inside(|queue| {
        let still = still();
        if still {
            queue.push_back(&raw const place);
        }
        still
    });
    if !queued {
        return Parked::Refused;
    }
    loop {
        match place.bell.load(Acquire) {
            SILENT => {}
            rung => return Parked::Unparked { others: rung == UNPARKED_FROM_OTHERS },
        }
        if place.bell.wait(SILENT, deadline) == Waited::TimedOut {
            let left = LOT.inside(|queue| {
                let nth = queue.iter().position(|&other| core::ptr::eq(other, &raw const place));
                nth.map(|nth| queue.remove(nth)).is_some()
            });
            if left {
                return Parked::TimedOut;
            }
        }
    }
}

pub(crate) fn unpark_one(key: usize) {
    let bell = LOT.inside(|queue| {
        // SAFETY: a thread in the queue is in `park`. It leaves that only through the gate, or when
        // its bell has rung.
        let is_there = |&place: &*const Place| unsafe { (*place).key } == key;
        let nth = queue.iter().position(is_there)?;
        let place = queue.remove(nth)?;
        let rings = if queue.iter().any(is_there) { UNPARKED_FROM_OTHERS } else { UNPARKED };
        // SAFETY: as above, until the bell rings.
        let bell = unsafe { &(*place).bell };
        let name = bell.key();
        bell.swap(rings, Release);
        Some(name)
    });
    if let Some(bell) = bell {
        bell.wake(1);
    }
}
