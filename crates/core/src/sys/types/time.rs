//! A deadline as data. What needs a clock is in [`time`](crate::time).

use core::time::Duration;

/// The clocks a deadline can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: it cannot be set, and it stands still while the machine is suspended.
    Monotonic,
    /// `CLOCK_REALTIME`: the time of day. Setting it moves the deadlines that are on it.
    Realtime,
}

/// An absolute point in time, on [`Clock::Monotonic`] unless it says otherwise.
///
/// Deadlines on different clocks are never equal. There is no `<` for deadlines, because it could
/// only be false across clocks: [`passes_before`](Self::passes_before) compares any two by the time
/// that remains, and [`earlier`](Self::earlier) chooses.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_core::time::Deadline;
///
/// let soon = Deadline::after(Duration::from_millis(1));
/// while !soon.has_passed() {
///     std::thread::sleep(soon.remaining());
/// }
/// assert_eq!(soon.remaining(), Duration::ZERO);
/// assert!(soon.passes_before(Deadline::after(Duration::MAX)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    clock: Clock,
    since_zero: Duration,
}

impl Deadline {
    /// A deadline that does not pass.
    pub const NEVER: Self = Self::new(Clock::Monotonic, Duration::MAX);

    /// The moment when `clock` shows `since_zero`, as in the `timespec` of a C interface.
    #[must_use]
    pub const fn new(clock: Clock, since_zero: Duration) -> Self {
        Self { clock, since_zero }
    }

    /// The clock this deadline is on.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the clock shows at this moment.
    #[must_use]
    pub const fn since_zero(&self) -> Duration {
        self.since_zero
    }
}
