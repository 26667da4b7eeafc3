//! Do woken waiters come too late?
//!
//! On a lock that is always taken, a waiter that is woken comes too late, whatever the CPUs do.
//! After such a wasted wake-up no release wakes another waiter for a while: for [`REST_US`]
//! microseconds, and twice as long each time in a row, up to [`LONGEST_REST_US`]. The same holds if
//! a woken waiter has not arrived at all: it may have to wait for a CPU while another is idle.
//!
//! # Without this rule
//! Two CPUs of a Xeon, 23 November 2026, medians of six interleaved rounds of 60 ms; see
//! `benches/results/NOTES-2026-11-24.md`. Futex calls a second, with the rule and
//! without:
//!
//! | inside, outside | 2 threads | 8 | 32 | 100 |
//! |---|---|---|---|---|
//! | 20 ns, 20 ns | 775, 4,855 | 2,298, 35,050 | 1,382, 49,100 | 1,373, 43,661 |
//! | 1 us, 9 us | 92, 83 | 608, 5,538 | 691, 4,672 | 1,057, 7,818 |
//! | 10 us, 0 | 2,548, 12,516 | 3,823, 15,245 | 3,947, 20,494 | 4,354, 25,477 |
//!
//! At (10, 0) us an operation costs 1.02, 1.08, 1.15 and 1.19 times the CPU time. Throughput is the
//! same.

use super::{Plan, RESTED, now_us};

/// The shortest rest, in microseconds.
const REST_US: u16 = 50;
/// The longest rest, in multiples of that.
pub(super) const LONGEST_REST: u8 = 32;
/// The same in microseconds.
const LONGEST_REST_US: u16 = LONGEST_REST as u16 * REST_US;

impl Plan {
    /// Begins a rest: a wake-up was wasted, or is being made.
    pub(super) fn begin_rest(&mut self) {
        self.rests_until = (now_us() as u16).wrapping_add(u16::from(self.rest.max(1)) * REST_US);
        self.flags &= !RESTED;
    }

    pub(super) fn lengthen_rest(&mut self) {
        self.rest = self.rest.saturating_mul(2).clamp(1, LONGEST_REST);
    }

    /// Ends the rest if its time is over.
    pub(super) fn end_rest(&mut self, now: u32) {
        if self.rests_until.wrapping_sub(now as u16).wrapping_sub(1) >= LONGEST_REST_US {
            self.flags |= RESTED;
        }
    }

    /// Whether the time of the rest is over, so that a waiter that has not arrived is replaced.
    pub(super) fn is_rested(&self) -> bool {
        self.flags & RESTED != 0
    }

    /// Whether no rest keeps a release from waking a waiter, if the last one has arrived.
    pub(super) fn may_wake(&self) -> bool {
        self.is_rested() || self.rest == 0
    }
}
