//! The lock of D. Dice and A. Kogan, "Reciprocating Locks" (PPoPP 2025), listing 1: arrivals push
//! themselves on a stack, and the releasing thread takes the whole stack as the next ones to go in.

use super::{Line, Section};
use std::cell::Cell;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, spin_until};

const NONE: u32 = 0;
/// The lock is held and nobody has arrived since the stack was taken.
const LOCKED_EMPTY: u32 = 1;
/// The element of thread 0.
const FIRST: u32 = 2;

pub(in super::super) struct Reciprocating {
    arrivals: Line<AtomicU32>,
    /// What each thread waits for: the end of the segment that it belongs to.
    gates: Vec<Line<AtomicU32>>,
    /// The thread that goes in after each one.
    successors: Vec<Cell<u32>>,
}

impl Reciprocating {
    fn gate(&self, element: u32) -> &AtomicU32 {
        &self.gates[(element - FIRST) as usize].0
    }
}

impl Section for Reciprocating {
    fn new(sockets: Vec<usize>) -> Self {
        Self {
            arrivals: Line(AtomicU32::new(NONE)),
            gates: sockets.iter().map(|_| Line(AtomicU32::new(NONE))).collect(),
            successors: sockets.iter().map(|_| Cell::new(NONE)).collect(),
        }
    }

    fn enter(&self, me: usize) -> u32 {
        let mine = me as u32 + FIRST;
        self.gate(mine).store(NONE, Relaxed);
        let before = self.arrivals.0.swap(mine, AcqRel);
        self.successors[me].set(NONE);
        if before == NONE {
            return mine;
        }
        let mut end = NONE;
        spin_until(|| {
            end = self.gate(mine).load(Acquire);
            end != NONE
        });
        if before == end {
            return LOCKED_EMPTY;
        }
        if before != LOCKED_EMPTY {
            self.successors[me].set(before);
        }
        end
    }

    fn leave(&self, me: usize, end: u32) {
        let successor = self.successors[me].get();
        if successor != NONE {
            self.gate(successor).store(end, Release);
        } else if self.arrivals.0.compare_exchange(end, NONE, Release, Relaxed).is_err() {
            let first = self.arrivals.0.swap(LOCKED_EMPTY, AcqRel);
            self.gate(first).store(end, Release);
        }
    }
}
