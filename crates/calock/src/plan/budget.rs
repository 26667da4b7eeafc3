//! How many CPUs were free in the last round?
//!
//! A wake-up takes effect on the CPUs in the next round only. So in one round no more waiters are
//! woken than CPUs were free in the last one. This holds if the lock has users that are not woken:
//! after the wake-ups of this round the lock was released by a thread that had not been parked.
//! Otherwise each release wakes the next waiter: many threads that come once find a lock that is
//! quick.
//!
//! # Without this rule
//! TABLE-BUDGET
//!
//! | flag | meaning |
//! |---|---|
//! | `PARKED` | the holder was parked |
//! | `SPENT` | as many waiters were woken in this round as may be |
//! | `PASSED` | `SPENT`, and then a thread released that had not been parked |

use super::{PARKED, PASSED, Plan, SPENT};

impl Plan {
    /// The holder is about to release.
    #[inline]
    pub(crate) fn leaves(&mut self) {
        if self.flags & (SPENT | PARKED) == SPENT {
            self.flags |= PASSED;
        }
        self.flags &= !PARKED;
    }

    /// A round is over in which so many CPUs were free.
    pub(super) fn renew_budget(&mut self, free: u8) {
        self.flags &= !(SPENT | PASSED);
        self.spare = free.saturating_sub(1);
    }

    /// The present release wakes a waiter to contend.
    pub(super) fn spend_budget(&mut self) {
        match self.spare.checked_sub(1) {
            Some(spare) => self.spare = spare,
            None => self.flags = self.flags & !PASSED | SPENT,
        }
    }

    pub(super) fn has_budget(&self) -> bool {
        self.flags & PASSED == 0
    }
}
