//! Lock and unlock with no other thread about: several locks in one process, in turn.
//!
//! The differences are of a nanosecond, less than what two processes differ by. So the locks take
//! turns in short blocks, each in a loop compiled for it, and the blocks of one turn run within a
//! fraction of a millisecond of one another. A lock's figure is the median of its blocks. The loop
//! itself is part of it, the same for all: half a nanosecond that makes ratios look a little closer
//! to 1 than they are.
//!
//! Another thread is alive, asleep: without one glibc leaves out the atomic instructions, and
//! membarrier has no thread to speak to.

use crate::run::child::Task;
use crate::run::pinning::{self, Pin};
use crate::run::threads::keep_a_thread_asleep;
use crate::statistics;
use crate::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use anyhow::{Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Pairs in a block: some tens of microseconds, far from what a clock read takes and from a time
/// slice.
pub(super) const BLOCK: u32 = 4_000;

/// What is timed of each subject: a pair of operations that undo one another.
pub trait Pairs: Serialize + DeserializeOwned {
    /// A block of them on the subject called `name`.
    fn block(&self, name: &str) -> Result<Run>;
}

/// What to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PairsSpec<P> {
    /// Names in the registry.
    pub subjects: Vec<String>,
    /// What is timed.
    pub pairs: P,
    /// How long for each subject.
    pub window_ms: u64,
}

/// Lock and unlock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Locks {
    /// Whether the locks are had together with other readers.
    pub reads: bool,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PairsResult {
    /// Nanoseconds of a lock and unlock, in the order of the subjects.
    pub ns: Vec<f64>,
}

impl<P: Pairs> Task for PairsSpec<P> {
    type Answer = PairsResult;

    fn carry_out(&self) -> Result<PairsResult> {
        ensure!(!self.subjects.is_empty(), "nothing to compare; allowed: at least one subject");
        keep_a_thread_asleep();
        if let Some(&cpu) = pinning::order(Pin::Scatter)?.first() {
            pinning::bind(cpu)?;
        }
        let blocks = self.subjects.iter().map(|name| self.pairs.block(name)).collect::<Result<Vec<_>>>()?;
        Ok(in_turns(blocks, self.own_time()))
    }

    fn own_time(&self) -> Duration {
        Duration::from_millis(self.window_ms) * self.subjects.len() as u32
    }

    fn workers(&self) -> u32 {
        1
    }
}

/// Runs a block and says how many nanoseconds a pair took.
pub type Run = Box<dyn FnMut() -> f64>;

/// Blocks in turn for so long; the median of each.
fn in_turns(mut blocks: Vec<Run>, time: Duration) -> PairsResult {
    let mut times = vec![Vec::new(); blocks.len()];
    let start = Instant::now();
    let mut turn = 0;
    // The first turns warm up caches and predictors.
    while turn < 5 || start.elapsed() < time {
        for place in 0..blocks.len() {
            // The first lock of a turn changes, so that no lock always follows the same one.
            let index = (place + turn) % blocks.len();
            let ns = blocks[index]();
            if turn > 2 {
                times[index].push(ns);
            }
        }
        turn += 1;
    }
    PairsResult { ns: times.iter().map(|times| statistics::median(times)).collect() }
}

/// The time of so many pairs, for one of them.
#[inline]
pub(crate) fn timed(times: u32, mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        pair();
    }
    start.elapsed().as_nanos() as f64 / f64::from(times)
}

impl Pairs for Locks {
    fn block(&self, name: &str) -> Result<Run> {
        locks::visit(Entry::find(name)?, Scope::Threads, Block { scope: Scope::Threads, reads: self.reads })?
    }
}

/// Makes a block of a registered lock.
pub(super) struct Block {
    /// Whose lock it is.
    pub(super) scope: Scope,
    /// Whether it is had together with other readers.
    pub(super) reads: bool,
}

impl Visitor for Block {
    type Output = Result<Run>;

    fn visit<L: Lock>(self, entry: &'static Entry) -> Self::Output {
        ensure!(
            !self.reads || L::SHARED_MODE,
            "lock '{}' has no mode for readers; allowed: locks that have",
            entry.name
        );
        let row = LockArray::<L>::new(self.scope, 1)?;
        if self.reads {
            return Ok(Box::new(move || {
                let lock = black_box(row.get(0));
                timed(BLOCK, || lock.with_shared(|| ()))
            }));
        }
        Ok(Box::new(move || {
            let lock = black_box(row.get(0));
            timed(BLOCK, || lock.with(|| ()))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_a_figure() {
        let locks: Vec<String> = Entry::all().iter().map(|entry| entry.name.into()).collect();
        let result = PairsSpec { subjects: locks.clone(), pairs: Locks { reads: false }, window_ms: 1 }
            .carry_out()
            .unwrap();
        assert_eq!(result.ns.len(), locks.len());
        assert!(result.ns.iter().all(|&ns| ns.is_finite() && ns > 0.0), "{result:?}");
    }

    #[test]
    fn no_locks_are_refused() {
        let error = PairsSpec { subjects: Vec::new(), pairs: Locks { reads: false }, window_ms: 1 }
            .carry_out()
            .unwrap_err()
            .to_string();
        assert_eq!(error, "nothing to compare; allowed: at least one subject");
    }
}
