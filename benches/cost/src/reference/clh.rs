//! The queue lock of Craig, and of Landin and Hagersten: each thread waits on the node of its
//! predecessor, and leaves with that node in place of its own.

use super::{Line, Section};
use std::cell::Cell;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, spin_until};

pub(in super::super) struct Clh {
    tail: Line<AtomicU32>,
    /// Whether the thread that has the node holds the lock or waits for it. The last one is
    /// nobody's at first.
    taken: Vec<Line<AtomicBool>>,
    /// The node of each thread.
    own: Vec<Cell<u32>>,
}

impl Section for Clh {
    fn new(sockets: Vec<usize>) -> Self {
        let threads = sockets.len() as u32;
        Self {
            tail: Line(AtomicU32::new(threads)),
            taken: (0..=threads).map(|_| Line(AtomicBool::new(false))).collect(),
            own: (0..threads).map(Cell::new).collect(),
        }
    }

    fn enter(&self, me: usize) -> u32 {
        let own = self.own[me].get();
        self.taken[own as usize].0.store(true, Relaxed);
        let before = self.tail.0.swap(own, AcqRel);
        spin_until(|| !self.taken[before as usize].0.load(Acquire));
        before
    }

    fn leave(&self, me: usize, before: u32) {
        let own = self.own[me].replace(before);
        self.taken[own as usize].0.store(false, Release);
    }
}
