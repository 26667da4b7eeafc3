//! The pause as a unit of time, of which a model has none.
//!
//! A budget is one look: further ones add executions and no behaviour. The pause is nothing at all:
//! told that a thread pauses, loom lets the others run to their end first, and the look would
//! always find the lock free.

use crate::sys::world::Price;

pub(crate) fn budget(_: bool, ns: u32) -> u32 {
    u32::from(ns > 0)
}

pub(crate) fn count(_: u32) -> u32 {
    1
}

pub(crate) fn times(_: u32) {}

/// What a look was, which has no price here.
pub(crate) fn timed<R>(look: impl FnOnce() -> R) -> (R, Price) {
    (look(), Price::default())
}
