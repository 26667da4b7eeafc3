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
/// An [`interruptible`](Self::interruptible) deadline is another value than the plain one of the
/// same moment, though neither passes before the other.
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
    interruptible: bool,
}

impl Deadline {
    /// A deadline that does not pass.
    pub const NEVER: Self = Self::new(Clock::Monotonic, Duration::MAX);

    /// The moment when `clock` shows `since_zero`, as in the `timespec` of a C interface.
    #[must_use]
    pub const fn new(clock: Clock, since_zero: Duration) -> Self {
        Self { clock, since_zero, interruptible: false }
    }

    /// The same moment, for a wait that a signal handler ends, too.
    ///
    /// A handler that runs while the thread sleeps ends the wait as if this deadline had passed. So
    /// an acquisition that gives up before its deadline [has passed](Self::has_passed) was
    /// interrupted. Without a limit, a wait of this kind has the deadline
    /// `Deadline::NEVER.interruptible()`.
    ///
    /// Which locks sleep so says [`RawInterruptible`](crate::raw::RawInterruptible). To the others
    /// this is the plain deadline.
    ///
    /// # Examples
    /// ```
    /// use ulocks_core::time::Deadline;
    ///
    /// let until_a_signal = Deadline::NEVER.interruptible();
    /// assert!(until_a_signal.is_interruptible() && !until_a_signal.has_passed());
    /// assert_ne!(until_a_signal, Deadline::NEVER);
    /// ```
    #[must_use]
    pub const fn interruptible(self) -> Self {
        Self { interruptible: true, ..self }
    }

    /// Whether a signal handler ends a wait with this deadline.
    #[must_use]
    pub const fn is_interruptible(&self) -> bool {
        self.interruptible
    }

    /// The same moment, for a wait that goes on after a signal handler.
    #[doc(hidden)]
    #[must_use]
    pub const fn plain(self) -> Self {
        Self { interruptible: false, ..self }
    }

    /// Whether this deadline does not pass.
    #[cfg(not(world = "machine"))]
    pub(crate) fn is_never(self) -> bool {
        self.plain() == Self::NEVER
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
