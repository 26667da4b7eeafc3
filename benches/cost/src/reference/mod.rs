//! The spin locks of the literature: what a lock costs that does nothing but its algorithm. They
//! are yardsticks for the family, and they are held against published measurements (`curves`).
//!
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors" (ACM TOCS 1991). Each word lies on a cache line of its own. Threads name
//! themselves by numbers, and so do nodes of queues.

mod clh;
mod cna;
mod cohort;
mod qspinlock;
mod reciprocating;

pub(super) use clh::Clh;
pub(super) use cna::Cna;
pub(super) use cohort::Cohort;
pub(super) use qspinlock::Qspinlock;
pub(super) use reciprocating::Reciprocating;

use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, pause, spin_until};

/// A lock for a number of threads that know their own.
pub(super) trait Section {
    /// One for as many threads as there are elements: the socket of each.
    fn new(sockets: Vec<usize>) -> Self;
    /// Thread `me` enters. What it gets, it hands to `leave`.
    fn enter(&self, me: usize) -> u32;
    /// Thread `me` leaves.
    fn leave(&self, me: usize, token: u32);
}

#[repr(align(128))]
struct Line<T>(T);

/// Test-and-set: every look is a write.
pub(super) struct Tas(Line<AtomicBool>);

impl Section for Tas {
    fn new(_: Vec<usize>) -> Self {
        Self(Line(AtomicBool::new(false)))
    }

    fn enter(&self, _: usize) -> u32 {
        while self.0.0.swap(true, Acquire) {
            pause();
        }
        0
    }

    fn leave(&self, _: usize, _: u32) {
        self.0.0.store(false, Release);
    }
}

/// Test-and-test-and-set: looks until the lock seems free.
pub(super) struct Ttas(Line<AtomicBool>);

impl Section for Ttas {
    fn new(_: Vec<usize>) -> Self {
        Self(Line(AtomicBool::new(false)))
    }

    fn enter(&self, _: usize) -> u32 {
        loop {
            spin_until(|| !self.0.0.load(Relaxed));
            if !self.0.0.swap(true, Acquire) {
                return 0;
            }
        }
    }

    fn leave(&self, _: usize, _: u32) {
        self.0.0.store(false, Release);
    }
}

/// First come, first served; all look at one word.
pub(super) struct Ticket {
    next: Line<AtomicU32>,
    serving: Line<AtomicU32>,
}

impl Section for Ticket {
    fn new(_: Vec<usize>) -> Self {
        Self { next: Line(AtomicU32::new(0)), serving: Line(AtomicU32::new(0)) }
    }

    fn enter(&self, _: usize) -> u32 {
        let mine = self.next.0.fetch_add(1, Relaxed);
        spin_until(|| self.serving.0.load(Acquire) == mine);
        mine
    }

    fn leave(&self, _: usize, mine: u32) {
        self.serving.0.store(mine.wrapping_add(1), Release);
    }
}

/// First come, first served; each looks at a word of its own. Node 0 is no thread's.
pub(super) struct Mcs {
    tail: Line<AtomicU32>,
    nodes: Vec<Line<Node>>,
}

struct Node {
    next: AtomicU32,
    waits: AtomicBool,
}

impl Mcs {
    /// Whether a thread waits behind `me`, which holds the lock.
    fn has_waiter(&self, me: usize) -> bool {
        self.nodes[me + 1].0.next.load(Acquire) != 0
    }
}

impl Section for Mcs {
    fn new(sockets: Vec<usize>) -> Self {
        let threads = sockets.len();
        let node = |_| Line(Node { next: AtomicU32::new(0), waits: AtomicBool::new(false) });
        Self { tail: Line(AtomicU32::new(0)), nodes: (0..=threads).map(node).collect() }
    }

    fn enter(&self, me: usize) -> u32 {
        let mine = me as u32 + 1;
        let Node { next, waits } = &self.nodes[me + 1].0;
        next.store(0, Relaxed);
        waits.store(true, Relaxed);
        let before = self.tail.0.swap(mine, AcqRel);
        if before != 0 {
            self.nodes[before as usize].0.next.store(mine, Release);
            spin_until(|| !waits.load(Acquire));
        }
        mine
    }

    fn leave(&self, me: usize, mine: u32) {
        let next = &self.nodes[me + 1].0.next;
        if next.load(Acquire) == 0 {
            if self.tail.0.compare_exchange(mine, 0, Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| next.load(Acquire) != 0);
        }
        self.nodes[next.load(Acquire) as usize].0.waits.store(false, Release);
    }
}
