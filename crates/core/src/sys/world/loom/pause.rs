//! The pause as a unit of time, of which a model has none.
//!
//! A budget is one poll: further ones add executions and no behaviour. A pause does nothing. If
//! loom knew of the pause, it would let the other threads run to their end first, and the poll
//! would always find the lock free.

use crate::sys::world::PollCost;

pub(crate) fn budget(_: bool, ns: u32) -> u32 {
    u32::from(ns > 0)
}

pub(crate) fn count(_: u32) -> u32 {
    1
}

pub(crate) fn times(_: u32) {}

/// Runs `look`, which costs nothing here.
pub(crate) fn timed<R>(look: impl FnOnce() -> R, _: impl FnOnce(&R) -> bool) -> (R, PollCost) {
    (look(), PollCost::default())
}
