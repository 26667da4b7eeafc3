//! Do woken waiters come too late?
//!
//! On a lock that is always taken, a waiter that is woken comes too late, whatever the CPUs do.
//! After such a wasted wake-up no release wakes another waiter for a while: for [`REST_US`]
//! microseconds, and twice as long each time in a row, up to [`LONGEST_REST_US`]. The same holds if
//! a woken waiter has not arrived at all: it may have to wait for a CPU while another is idle.
//!
//! # Without this rule
//! TABLE-REST

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
