//! The spin locks of the literature: what a lock costs that does nothing but its algorithm. They
//! are yardsticks for the family.
//!
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors" (ACM TOCS 1991). Each word lies on a cache line of its own. Threads name
//! themselves by numbers, and so do nodes of queues.

use crossbeam_utils::CachePadded;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, pause, spin_until};

/// A lock for a number of threads that know their own.
pub(super) trait Section {
    /// One for so many threads.
    fn new(threads: usize) -> Self;
    /// Thread `me` enters. What it gets, it hands to `leave`.
    fn enter(&self, me: usize) -> u32;
    /// Thread `me` leaves.
    fn leave(&self, me: usize, token: u32);
}

/// Test-and-set: every look is a write. Test-and-test-and-set `LOOKS` until the lock seems free.
#[derive(Default)]
pub(super) struct Tas<const LOOKS: bool>(CachePadded<AtomicBool>);

impl<const LOOKS: bool> Section for Tas<LOOKS> {
    fn new(_: usize) -> Self {
        Self::default()
    }

    fn enter(&self, _: usize) -> u32 {
        loop {
            if LOOKS {
                spin_until(|| !self.0.load(Relaxed));
            }
            if !self.0.swap(true, Acquire) {
                return 0;
            }
            if !LOOKS {
                pause();
            }
        }
    }

    fn leave(&self, _: usize, _: u32) {
        self.0.store(false, Release);
    }
}

/// First come, first served; all look at one word.
#[derive(Default)]
pub(super) struct Ticket {
    next: CachePadded<AtomicU32>,
    serving: CachePadded<AtomicU32>,
}

impl Section for Ticket {
    fn new(_: usize) -> Self {
        Self::default()
    }

    fn enter(&self, _: usize) -> u32 {
        let mine = self.next.fetch_add(1, Relaxed);
        spin_until(|| self.serving.load(Acquire) == mine);
        mine
    }

    fn leave(&self, _: usize, mine: u32) {
        self.serving.store(mine.wrapping_add(1), Release);
    }
}

/// First come, first served; each looks at a word of its own. Node 0 is no thread's.
pub(super) struct Mcs {
    tail: CachePadded<AtomicU32>,
    nodes: Vec<CachePadded<Node>>,
}

#[derive(Default)]
struct Node {
    next: AtomicU32,
    waits: AtomicBool,
}

impl Section for Mcs {
    fn new(threads: usize) -> Self {
        Self { tail: CachePadded::default(), nodes: (0..=threads).map(|_| CachePadded::default()).collect() }
    }

    fn enter(&self, me: usize) -> u32 {
        let mine = me as u32 + 1;
        let Node { next, waits } = &*self.nodes[me + 1];
        next.store(0, Relaxed);
        waits.store(true, Relaxed);
        let before = self.tail.swap(mine, AcqRel);
        if before != 0 {
            self.nodes[before as usize].next.store(mine, Release);
            spin_until(|| !waits.load(Acquire));
        }
        mine
    }

    fn leave(&self, me: usize, mine: u32) {
        let next = &self.nodes[me + 1].next;
        if next.load(Acquire) == 0 {
            if self.tail.compare_exchange(mine, 0, Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| next.load(Acquire) != 0);
        }
        self.nodes[next.load(Acquire) as usize].waits.store(false, Release);
    }
}
