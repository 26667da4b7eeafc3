//! Is one thread faster alone?
//!
//! If moving the lock's cache line to another CPU and back takes longer than one thread takes to
//! return for the lock, a second active thread only slows the first down, and burns a CPU. In *solo
//! mode* one thread is active: an arriving thread that finds the lock taken parks at once, and
//! releases wake no waiter to contend.
//!
//! The rule tries it. The releases of a round and its length give the time from one release to the
//! next. While that is less than [`SLOW_NS`] and several threads are active, as their CPUs show,
//! the rule remembers the time, and the next round is solo. Solo mode ends if releases come less
//! often than before in two rounds in a row; or in the first solo round at once. The answer is
//! valid for [`VALID`] rounds, that is, 1/40 s, or up to four times as long. Then the rule asks
//! again. Below [`ALONE_NS`] it never asks again. So a wrong answer costs little. To ask costs a
//! sleep and a wake-up for each CPU.
//!
//! When the single active thread slows down, two slow rounds in a row (of at least
//! [`PERIOD`](super::PERIOD) releases), or two promotions, end solo mode. The first one only sets
//! `DOUBTED`. When it stops using the lock, the standby finds the lock idle: in solo mode the
//! standby sleeps for a millisecond at most, but for a sleep that it had begun before. A round in
//! which a waiter was promoted is not judged, since two threads were there, but it counts.
//!
//! Two threads that never parked are not seen, and pass a lock in solo mode to and fro until one
//! parks. When the last parked waiter has acquired, the answer stays as it is. The next waiter that
//! parks may sleep once for that.
//!
//! # Without this rule
//! Two CPUs of a Xeon, 23 November 2026, medians of six interleaved rounds of 60 ms; see
//! `benches/results/NOTES-2026-11-24.md`. Throughput, and CPU time an operation, without
//! the rule by those with it; 2, 8, 32 and 100 threads differ by less than 0.05 in throughput:
//!
//! | inside, outside | throughput | CPU time |
//! |---|---|---|
//! | 0, 0 | 0.83 to 0.87 | 1.51 to 1.55 |
//! | 20 ns, 20 ns | 0.86 to 0.88 | 1.35 to 1.47 |
//! | 100 ns, 100 ns | 0.90 to 0.91 | 1.23 to 1.34 |

use super::{DOUBTED, LONGEST_US, PERIOD, Plan, SOLO};

/// From so many nanoseconds between two releases on the rule does not ask. A line goes to another
/// CPU and back in 200 to 400 ns where that was measured. The answer changed at 100 ns outside, and
/// at 150 ns both inside and outside.
pub(super) const SLOW_NS: u32 = 400;
/// Up to so many nanoseconds one thread is faster alone.
pub(super) const ALONE_NS: u32 = 64;
/// For how many rounds the answer is valid.
pub(super) const VALID: u8 = 64;

impl Plan {
    /// Judges a round that lasted so many microseconds.
    pub(super) fn judge_solo(&mut self, lasted: u32) {
        let solo = self.shall_be_solo(lasted);
        self.flags &= !SOLO;
        self.flags |= if solo { SOLO } else { 0 };
    }

    fn shall_be_solo(&mut self, lasted: u32) -> bool {
        let doubted = self.flags & DOUBTED != 0;
        self.flags &= !DOUBTED;
        if lasted > LONGEST_US {
            self.valid = 0;
            return false;
        }
        self.valid = self.valid.saturating_sub(1);
        let ns = (lasted * 1_000 / (u32::from(self.periods).max(1) * PERIOD)).min(SLOW_NS);
        let before = u32::from(self.before) * 2;
        let slower = ns > before.max(ALONE_NS) || ns == SLOW_NS;
        if self.is_solo() {
            if slower && doubted {
                self.valid = VALID;
                return false;
            }
            self.flags |= if slower { DOUBTED } else { 0 };
            if ns <= ALONE_NS {
                self.valid = VALID;
            }
            return self.valid > 0;
        }
        let one = self.seen.bits().count_ones() <= 1;
        let mean = if before == 0 { ns } else { (3 * before + ns) / 4 };
        if !one {
            self.before = mean.div_ceil(2) as u8;
        }
        let solo = self.valid == 0 && ns < SLOW_NS && if one { !slower } else { mean < SLOW_NS };
        if solo {
            self.flags |= DOUBTED;
            self.valid = VALID;
        }
        solo
    }

    /// Counts a solo round that is not judged, because a parked waiter acquired in it.
    pub(super) fn skip_solo_round(&mut self) {
        self.valid = self.valid.saturating_sub(1);
        self.flags &= if self.valid == 0 { !SOLO } else { !0 };
    }

    /// Whether one thread is to be active alone, and all others to park.
    #[inline]
    pub(crate) fn is_solo(&self) -> bool {
        self.flags & SOLO != 0
    }
}
