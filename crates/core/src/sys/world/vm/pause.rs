//! The pause as a unit of time. The engine says how many pauses a budget has: an explorer has room
//! for one poll in any budget, the cost model counts.

use crate::sys::types::time::Clock;
use crate::sys::world::{PollCost, clock};
use core::cell::Cell;
use ulocks_vm::sync::{PerRun, pause_times, pauses_in};

/// What a reading of the clock takes, in nanoseconds.
static READING: PerRun<Cell<Option<u64>>> = PerRun::new(Cell::default);

pub(crate) fn budget(_: bool, ns: u32) -> u32 {
    if ns == 0 { 0 } else { count(ns) }
}

pub(crate) fn count(ns: u32) -> u32 {
    pauses_in(ns).max(1)
}

#[track_caller]
pub(crate) fn times(count: u32) {
    pause_times(count);
}

/// Runs `look`, and returns its cost. The end of a look that `succeeds` is not timed. In an
/// exploration the cost is zero, since each reading of a clock would have to be explored.
#[track_caller]
pub(crate) fn timed<R>(look: impl FnOnce() -> R, succeeds: impl FnOnce(&R) -> bool) -> (R, PollCost) {
    const LONG: u32 = 1_000_000;
    if pauses_in(LONG) <= 1 {
        return (look(), PollCost::default());
    }
    let reading = READING.get().unwrap_or_else(|| {
        let before = now_ns();
        now_ns() - before
    });
    READING.set(Some(reading));
    let before = now_ns();
    let seen = look();
    if succeeds(&seen) {
        return (seen, PollCost::default());
    }
    (seen, PollCost::of(now_ns() - before, reading, count))
}

fn now_ns() -> u64 {
    clock::now(Clock::Monotonic).as_nanos() as u64
}
