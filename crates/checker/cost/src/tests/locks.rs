//! Small locks, as the textbooks have them. No lock of the family: what they cost is known.

use ulocks_vm::futex;
use ulocks_vm::sync::{AtomicU32, Ordering::*, pause, spin_until};

/// A line of its own, two of them against machines that fetch pairs.
#[repr(align(128))]
pub struct Line<T>(pub T);

/// A lock for a fixed number of threads, which name themselves.
pub trait Lock: Send + Sync + 'static {
    fn new(threads: usize) -> Self;
    fn lock(&self, me: usize);
    fn unlock(&self, me: usize);
}

/// Test and set.
pub struct Tas(AtomicU32);

impl Lock for Tas {
    fn new(_: usize) -> Self {
        Self(AtomicU32::new(0))
    }
    fn lock(&self, _: usize) {
        while self.0.swap(1, Acquire) != 0 {
            pause();
        }
    }
    fn unlock(&self, _: usize) {
        self.0.store(0, Release);
    }
}

/// Test, and test and set.
pub struct Ttas(AtomicU32);

impl Lock for Ttas {
    fn new(_: usize) -> Self {
        Self(AtomicU32::new(0))
    }
    fn lock(&self, _: usize) {
        loop {
            spin_until(|| self.0.load(Relaxed) == 0);
            if self.0.swap(1, Acquire) == 0 {
                return;
            }
        }
    }
    fn unlock(&self, _: usize) {
        self.0.store(0, Release);
    }
}

/// The two counters on two lines.
pub struct Ticket {
    next: Line<AtomicU32>,
    serving: Line<AtomicU32>,
}

impl Lock for Ticket {
    fn new(_: usize) -> Self {
        Self { next: Line(AtomicU32::new(0)), serving: Line(AtomicU32::new(0)) }
    }
    fn lock(&self, _: usize) {
        let mine = self.next.0.fetch_add(1, Relaxed);
        spin_until(|| self.serving.0.load(Acquire) == mine);
    }
    fn unlock(&self, _: usize) {
        let next = self.serving.0.load(Relaxed).wrapping_add(1);
        self.serving.0.store(next, Release);
    }
}

/// The queue of Mellor-Crummey and Scott, 1991, with numbers for pointers.
pub struct Mcs {
    tail: Line<AtomicU32>,
    nodes: Vec<Line<(AtomicU32, AtomicU32)>>,
}

impl Lock for Mcs {
    fn new(threads: usize) -> Self {
        let node = |_| Line((AtomicU32::new(0), AtomicU32::new(0)));
        Self { tail: Line(AtomicU32::new(0)), nodes: (0..threads).map(node).collect() }
    }
    fn lock(&self, me: usize) {
        let (next, waits) = &self.nodes[me].0;
        next.store(0, Relaxed);
        waits.store(1, Relaxed);
        let before = self.tail.0.swap(me as u32 + 1, AcqRel);
        if before != 0 {
            self.nodes[before as usize - 1].0.0.store(me as u32 + 1, Release);
            spin_until(|| waits.load(Acquire) == 0);
        }
    }
    fn unlock(&self, me: usize) {
        let next = &self.nodes[me].0.0;
        if next.load(Acquire) == 0 {
            if self.tail.0.compare_exchange(me as u32 + 1, 0, Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| next.load(Acquire) != 0);
        }
        self.nodes[next.load(Relaxed) as usize - 1].0.1.store(0, Release);
    }
}

/// The mutex of three states (Drepper, "Futexes Are Tricky"), with `LOOKS` looks before it sleeps.
pub struct ThreeState<const LOOKS: u32>(AtomicU32);

impl<const LOOKS: u32> Lock for ThreeState<LOOKS> {
    fn new(_: usize) -> Self {
        Self(AtomicU32::new(0))
    }
    fn lock(&self, _: usize) {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return;
        }
        for _ in 0..LOOKS {
            pause();
            if self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return;
            }
        }
        while self.0.swap(2, Acquire) != 0 {
            futex::wait(&self.0, 2, !0, None, true);
        }
    }
    fn unlock(&self, _: usize) {
        if self.0.swap(0, Release) == 2 {
            futex::wake((&raw const self.0).addr(), 1, !0, true);
        }
    }
}
