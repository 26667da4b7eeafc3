//! Turns of a worker, counted where others can look while it works.

use super::locks::phase::STOP;
use super::locks::zeroed;
use anyhow::Result;
use crossbeam_utils::CachePadded;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What a worker has for itself. All-zero is one that has done nothing.
#[derive(Debug, Default)]
pub struct Cell {
    /// Its turns.
    pub turns: AtomicU64,
    /// One when it may be posted to.
    pub ready: AtomicU32,
    /// A word that it sleeps on.
    pub word: AtomicU32,
}

/// So many of them, each on lines of its own, which forked processes share. They stay as long as
/// the process, which is that of a trial.
pub fn cells(count: usize) -> Result<&'static [CachePadded<Cell>]> {
    // SAFETY: cells are atomics, which may be zero, and are aligned to a line.
    unsafe { zeroed(count) }
}

/// Counts the turns of a worker, and says when it is over.
#[derive(Debug)]
pub struct Lap<'a> {
    count: u64,
    turns: &'a AtomicU64,
    phase: &'a AtomicU32,
}

impl<'a> Lap<'a> {
    /// Of the worker with this cell, until the phase is [`STOP`].
    pub fn new(cell: &'a Cell, phase: &'a AtomicU32) -> Self {
        Self { count: 0, turns: &cell.turns, phase }
    }

    /// The phase.
    pub fn phase(&self) -> &'a AtomicU32 {
        self.phase
    }

    /// Whether the worker shall go on.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.phase.load(Relaxed) != STOP
    }

    /// A turn is done.
    #[inline]
    pub fn done(&mut self) {
        self.add(1);
    }

    /// So many are done.
    #[inline]
    pub fn add(&mut self, turns: u64) {
        self.count += turns;
        self.turns.store(self.count, Relaxed);
    }

    /// Turn after turn until it is over, one at least.
    #[inline]
    pub fn run(&mut self, mut turn: impl FnMut()) {
        loop {
            turn();
            self.done();
            if !self.goes_on() {
                return;
            }
        }
    }
}
