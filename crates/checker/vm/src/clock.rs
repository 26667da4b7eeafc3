//! Time of the machine: it moves only when the run says so.

use crate::engine;
use core::time::Duration;

/// The clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_REALTIME`.
    Realtime,
}

/// A point on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// On which clock.
    pub clock: Clock,
    /// How long after the clock's zero.
    pub since_zero: Duration,
}

/// What `clock` shows.
#[track_caller]
#[must_use]
pub fn now(clock: Clock) -> Duration {
    let at = core::panic::Location::caller();
    engine::with(|engine| {
        engine.look_at_clock(at);
        engine.now(clock)
    })
}

/// The deadline in `duration` from now. The longest ones never pass, as those of std.
#[track_caller]
pub(crate) fn passes_after(duration: Duration) -> Time {
    let clock = Clock::Monotonic;
    Time { clock, since_zero: now(clock).saturating_add(duration) }
}

/// Whether `deadline` has passed. Until it has, the answer is a choice of the run; once it has, it
/// stays so.
#[track_caller]
#[must_use]
pub fn has_passed(deadline: Time) -> bool {
    let at = core::panic::Location::caller();
    engine::with(|engine| engine.has_passed(deadline, at))
}
