//! Does every CPU have an active thread?
//!
//! A thread is active if it acquires, releases, works outside and returns without being parked. The
//! lock cannot count active threads, because it does not know which will return. But it sees on
//! which CPUs it was released past a parked waiter: in one release of four, or in solo mode in one
//! of 64. If in a round these are all CPUs on which the threads may run, every CPU has an active
//! thread: to wake one more would only take a CPU from another. Such a round is *full*. After a
//! full round, until one is not, releases wake no waiter to contend.
//!
//! The estimate is too high, so that too few threads are awake, in three cases:
//! - A thread that moved to another CPU in a round counts twice.
//! - Of more than 64 CPUs, those whose numbers differ by a multiple of 64 count as one.
//! - A CPU whose thread has left counts until the next round ends. That is an interval at most:
//!   then the promoted waiter finds the lock idle.
//!
//! It is too low, so that too many are awake, in three others:
//! - Two threads on one CPU count as one.
//! - A CPU counts as free if its thread returns less than once in a round, or does other work.
//! - So does a CPU on which only threads might run that do not use the lock any more.
//!
//! # Without this rule
//! Two CPUs of a Xeon, 23 November 2026, medians of six interleaved rounds of 60 ms; see
//! `benches/results/NOTES-2026-11-24.md`. Futex calls a second, with the rule and
//! without:
//!
//! | inside, outside | 2 threads | 8 | 32 | 100 |
//! |---|---|---|---|---|
//! | 1 us, 9 us | 92, 0 | 608, 1,149 | 691, 3,972 | 1,057, 5,995 |
//! | 3 us, 7 us | 125, 150 | 650, 2,424 | 824, 5,754 | 1,207, 8,722 |
//!
//! Throughput and CPU time do not differ there. The cost model predicts for 300 threads on two CPUs
//! at (1, 9) us a tenth less throughput, and sixty times as many sleeps.

use super::{FULL, LONGEST_US, Plan};
use ulocks_core::cpu;

/// A set of CPUs: the numbers modulo 64, in words that do not align the plan to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpus([u32; 2]);

impl Cpus {
    pub(super) const NONE: Self = Self::of(0);

    pub(super) const fn of(bits: u64) -> Self {
        Self([bits as u32, (bits >> 32) as u32])
    }

    pub(super) fn bits(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    fn with(self, bits: u64) -> Self {
        Self::of(self.bits() | bits)
    }
}

impl Plan {
    /// The holder is about to release on `cpu`; called for a sample of the releases.
    #[inline]
    pub(crate) fn saw(&mut self, cpu: u32) {
        self.seen = self.seen.with(1 << (cpu % u64::BITS));
    }

    /// Adds the CPUs on which the holder may run.
    pub(super) fn note_usable(&mut self) {
        self.usable = self.usable.with(cpu::usable());
    }

    /// Judges a round that lasted so many microseconds.
    pub(super) fn judge_cpus(&mut self, lasted: u32) {
        let all_seen = self.usable.bits() & !self.seen.bits() == 0;
        self.flags &= !FULL;
        self.flags |= if lasted <= LONGEST_US && all_seen { FULL } else { 0 };
    }

    /// Whether the last round was full.
    pub(super) fn is_full(&self) -> bool {
        self.flags & FULL != 0
    }
}
