//! The clock of the machine. It moves when the run lets a deadline expire, so an execution takes
//! the same course however fast the machine below is.

use crate::sys::types::time::{Clock, Deadline};
use core::cell::RefCell;
use core::time::Duration;
use std::time::Instant;
use ulocks_vm::clock::{self, Time};
use ulocks_vm::sync::PerRun;

/// The instants of the real clock that the execution has seen, and the moments they stand for.
static INSTANTS: PerRun<RefCell<Vec<(Instant, Duration)>>> = PerRun::new(RefCell::default);

/// Reads `clock`.
pub(crate) fn now(clock: Clock) -> Duration {
    clock::now(named(clock))
}

/// The moment that stands for `instant`: for each instant not seen before, a second later than for
/// the last one. The order in which the execution meets them is all that it can know of instants
/// without depending on its own speed.
pub(crate) fn moment_of(instant: Instant) -> Duration {
    // Others may run while the clock is read.
    let reading = now(Clock::Monotonic);
    let mut instants = INSTANTS.borrow_mut();
    if let Some(&(_, moment)) = instants.iter().find(|(seen, _)| *seen == instant) {
        return moment;
    }
    let nth = instants.len() as u64 + 1;
    let moment = reading.saturating_add(Duration::from_secs(nth));
    instants.push((instant, moment));
    moment
}

/// Whether `deadline` has passed: a choice of the run, as it is for a wait that could expire.
#[track_caller]
pub(crate) fn has_passed(deadline: &Deadline) -> bool {
    !deadline.is_never() && clock::has_passed(point(*deadline))
}

/// The deadline as the machine takes it.
pub(super) fn point(deadline: Deadline) -> Time {
    Time { clock: named(deadline.clock()), since_zero: deadline.since_zero() }
}

fn named(clock: Clock) -> clock::Clock {
    match clock {
        Clock::Monotonic => clock::Clock::Monotonic,
        Clock::Realtime => clock::Clock::Realtime,
    }
}
