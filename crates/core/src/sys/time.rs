//! Deadlines: absolute points on a clock, saturating.
//!
//! A wait that can be interrupted, woken spuriously or beaten to the lock is repeated, and only an
//! absolute point in time can be repeated without drifting. No arithmetic here overflows: what lies
//! beyond the range of the clock is [`Deadline::NEVER`] in effect, what lies before its zero is its
//! zero.

pub use super::types::time::{Clock, Deadline};

use super::world::clock;
use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

impl Deadline {
    /// `timeout` from now.
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        Self::after_on(Clock::Monotonic, timeout)
    }

    /// `timeout` from now on `clock`.
    #[must_use]
    pub fn after_on(clock: Clock, timeout: Duration) -> Self {
        Self::new(clock, clock::now(clock).saturating_add(timeout))
    }

    /// The same moment as `instant`, or later by the time it takes to read the clock, but not
    /// earlier.
    #[must_use]
    pub fn at(instant: Instant) -> Self {
        Self::new(Clock::Monotonic, clock::moment_of(instant))
    }

    /// The same moment as `time`, on [`Clock::Realtime`]. What lies before 1970 is the beginning
    /// of 1970.
    #[must_use]
    pub fn at_time_of_day(time: SystemTime) -> Self {
        Self::new(Clock::Realtime, time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }

    /// Whether the clock has reached this deadline.
    ///
    /// In a model this is a choice of the run, consistent with the other deadlines.
    #[must_use]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn has_passed(&self) -> bool {
        clock::has_passed(self)
    }

    /// How long it is until this deadline: zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.since_zero().saturating_sub(clock::now(self.clock()))
    }

    /// Whether this deadline passes before `other`: false if both pass at the same moment.
    ///
    /// On one clock this compares the moments. Across clocks it reads both clocks and compares the
    /// time that remains, so the answer is valid until the time of day is set; two
    /// deadlines that have passed do so at the same moment.
    #[must_use]
    pub fn passes_before(self, other: Self) -> bool {
        if self.clock() == other.clock() {
            self.since_zero() < other.since_zero()
        } else {
            self.remaining() < other.remaining()
        }
    }

    /// The deadline that passes first, and whether that is `second`. At the same moment it is
    /// `first`; `None` does not pass.
    ///
    /// For a wait that ends for one of two reasons. The clocks may differ: see
    /// [`passes_before`](Self::passes_before).
    ///
    /// It is returned as it is: it is [interruptible](Self::interruptible) if it was so before,
    /// whatever the other one is. If the one that passes later is interruptible, the wait asks
    /// [`Waited::interrupts`](crate::futex::Waited::interrupts) about that one.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use ulocks_core::time::{Clock, Deadline};
    ///
    /// let lunch = Deadline::after_on(Clock::Realtime, Duration::from_secs(60));
    /// let look = Deadline::after(Duration::from_secs(1));
    /// assert_eq!(Deadline::earlier(Some(lunch), Some(look)), (Some(look), true));
    /// assert_eq!(Deadline::earlier(Some(lunch), None), (Some(lunch), false));
    /// ```
    #[must_use]
    pub fn earlier(first: Option<Self>, second: Option<Self>) -> (Option<Self>, bool) {
        match (first, second) {
            (first, None) => (first, false),
            (Some(a), Some(b)) if !b.passes_before(a) => (first, false),
            (_, second) => (second, true),
        }
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::at(instant)
    }
}

impl From<SystemTime> for Deadline {
    fn from(time: SystemTime) -> Self {
        Self::at_time_of_day(time)
    }
}
