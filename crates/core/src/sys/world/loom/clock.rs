//! Time in a model: numbers that stand for no duration. It moves only when a deadline expires,
//! which is a choice of the run; so an execution takes the same course however fast the machine is,
//! and a deadline that has passed stays passed.

use super::kernel::table;
use crate::sys::types::time::{Clock, Deadline};
use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

/// The clocks of one execution.
#[derive(Default)]
pub(super) struct Clocks {
    /// By clock: the latest deadline on it that has expired.
    expired: [Cell<Duration>; 2],
    /// Readings so far. Each is a nanosecond later than it would be, so that no two deadlines are
    /// the same moment.
    readings: Cell<u32>,
    /// What instants of the real clock stand for: the order in which the model first saw them.
    instants: RefCell<HashMap<Instant, Duration>>,
}

impl Clocks {
    pub(super) fn has_expired(&self, deadline: &Deadline) -> bool {
        deadline.since_zero() <= self.expired[deadline.clock() as usize].get()
    }

    pub(super) fn expire(&self, deadline: &Deadline) {
        let expired = &self.expired[deadline.clock() as usize];
        expired.set(expired.get().max(deadline.since_zero()));
    }

    fn read(&self, clock: Clock) -> Duration {
        self.readings.set(self.readings.get() + 1);
        self.expired[clock as usize].get().saturating_add(Duration::from_nanos(self.readings.get().into()))
    }

    /// A second later than the moment before it, for each instant not seen yet.
    fn moment_of(&self, instant: Instant) -> Duration {
        let mut instants = self.instants.borrow_mut();
        let nth = instants.len() as u64 + 1;
        let now = self.expired[Clock::Monotonic as usize].get();
        *instants.entry(instant).or_insert_with(|| now.saturating_add(Duration::from_secs(nth)))
    }
}

/// Reads `clock`.
pub(crate) fn now(clock: Clock) -> Duration {
    table().clocks().read(clock)
}

/// The moment that stands for `instant`.
pub(crate) fn moment_of(instant: Instant) -> Duration {
    table().clocks().moment_of(instant)
}

/// Whether `deadline` has passed: a choice of the run, as it is for a wait that could expire.
pub(crate) fn has_passed(deadline: &Deadline) -> bool {
    table().draw_expiry(deadline)
}
