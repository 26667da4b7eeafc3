//! The measured loops, compiled for each lock. What is not the lock is called, and compiled once.

use super::Lock;
use super::erased::Others;
use crate::run::busy_work::burn;
use crate::run::clock::monotonic_ns;
use std::any::Any;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

/// What a coordinator tells the loop of turns, in this order.
pub mod phase {
    /// Workers gather at the barrier.
    pub const GATHER: u32 = 0;
    /// Workers go for the lock one after the other, and make room for the next.
    pub const RAMP_UP: u32 = 1;
    /// Operations do not count yet.
    pub const WARM_UP: u32 = 2;
    /// Operations count.
    pub const MEASURE: u32 = 3;
    /// Workers end.
    pub const STOP: u32 = 4;
}

/// What the loop of turns shares with other workers.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// One of the phases; read at each operation.
    pub phase: &'a AtomicU32,
    /// Raised by a load and a store in each exclusive critical section.
    pub protected: &'a AtomicU64,
    /// Nothing inside, nothing outside, no clock and no readers: the lock alone.
    pub bare: bool,
    /// Whether each acquisition is timed.
    pub timed: bool,
}

/// The next turn of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    /// Work inside, in iterations.
    pub inside: u64,
    /// Whether it is a reader's.
    pub reads: bool,
}

/// What a worker does beside the lock.
pub trait Worker {
    /// Works outside, and says what comes: nothing if it is over. Never called by a bare loop.
    fn outside(&mut self) -> Option<Next>;
    /// The phase is no longer `seen` but `now`, after so many operations. Returns the phase that
    /// the loop shall take for the present one.
    fn changed(&mut self, seen: u32, now: u32, operations: u64) -> u32;
    /// An acquisition that ended in the window or after it took so long.
    fn waited(&mut self, ns: u64);
}

/// What the loop of turns has done from first to last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turned {
    /// Exclusive operations.
    pub exclusive: u64,
    /// Shared operations that saw the protected counter change.
    pub torn: u64,
}

/// Franke's loop: outside, lock, inside, unlock, until the phase is [`phase::STOP`]. Both times are
/// drawn before the lock is asked for.
#[inline(never)]
pub(super) fn turns<L: Lock, const BARE: bool>(lock: &L, lane: Lane<'_>, worker: &mut dyn Worker) -> Turned {
    let Lane { phase: present, protected, timed, .. } = lane;
    let mut turned = Turned::default();
    let (mut total, mut seen) = (0u64, phase::GATHER);
    loop {
        let next = if BARE { Some(Next::default()) } else { worker.outside() };
        let Some(Next { inside, reads }) = next else {
            worker.changed(seen, phase::STOP, total + 1);
            return turned;
        };
        let now_ns = || if !BARE && timed { monotonic_ns() } else { 0 };
        let asked = now_ns();
        let had = if !BARE && L::SHARED_MODE && reads {
            lock.shared(|| {
                let had = now_ns();
                let first = protected.load(Relaxed);
                burn(inside);
                turned.torn += u64::from(protected.load(Relaxed) != first);
                had
            })
        } else {
            turned.exclusive += 1;
            let _held = lock.acquire(true);
            let had = now_ns();
            let next = protected.load(Relaxed).wrapping_add(1);
            if !BARE {
                burn(inside);
            }
            protected.store(next, Relaxed);
            had
        };
        total += 1;
        let now = present.load(Relaxed);
        if now != seen {
            seen = worker.changed(seen, now, total);
        }
        if !BARE && timed && seen >= phase::MEASURE {
            worker.waited(had - asked);
        }
        if seen == phase::STOP {
            return turned;
        }
    }
}

/// The time of so many pairs of operations.
#[inline]
pub fn time(times: u32, mut pair: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        pair();
    }
    start.elapsed()
}

/// One of two threads that pass four locks around; see `workloads::handoff`. It calls `ready` once
/// it has its first two.
#[inline(never)]
pub(super) fn hand_over<L: Lock>(
    zero: &L,
    others: Others<'_>,
    first: bool,
    turns: u64,
    ready: &mut dyn FnMut(),
) -> Duration {
    let [one, two, three] = others.map(|other| {
        let other: &dyn Any = other;
        other.downcast_ref::<L>().expect("the four locks are of one type")
    });
    if first {
        let (mut at_zero, mut at_two) = (zero.acquire(true), two.acquire(true));
        ready();
        let start = Instant::now();
        for _ in 0..turns {
            drop(at_zero);
            let at_one = one.acquire(true);
            drop(at_two);
            let at_three = three.acquire(true);
            drop(at_one);
            at_zero = zero.acquire(true);
            drop(at_three);
            at_two = two.acquire(true);
        }
        start.elapsed()
    } else {
        let (mut at_one, mut at_three) = (one.acquire(true), three.acquire(true));
        ready();
        let start = Instant::now();
        for _ in 0..turns {
            let at_zero = zero.acquire(true);
            drop(at_one);
            let at_two = two.acquire(true);
            drop(at_three);
            at_one = one.acquire(true);
            drop(at_zero);
            at_three = three.acquire(true);
            drop(at_two);
        }
        start.elapsed()
    }
}
