//! How often a waiter that was culled is promoted.

use crate::advice::{Advice, Advised, Planned};

mod sealed {
    use crate::advice::Advice;

    pub trait Sealed {
        /// What is decided in place of the plan.
        type Advice: Advice;
    }
}

/// How long the oldest waiter that was culled sleeps before the lock is kept for it. Zero-sized;
/// chosen by type: [`Every`].
pub trait Interval: sealed::Sealed + Send + Sync + 'static {
    /// The time in nanoseconds.
    const NS: u64;
}

/// Every `NS` nanoseconds, by default ten milliseconds. A promotion costs a timer, two wake-ups and
/// a sleep; a shorter interval bounds the wait of the others more tightly, and costs more: with a
/// hundred threads at 1 us inside and 9 us outside, 0.004 sleeps an operation at 1 ms, 0.002 at 10
/// ms, 0.0005 at 100 ms (`BENCHMARKS.md`, "The interval").
#[derive(Debug)]
pub enum Every<const NS: u64 = 10_000_000> {}

impl<const NS: u64> sealed::Sealed for Every<NS> {
    type Advice = Planned;
}
impl<const NS: u64> Interval for Every<NS> {
    const NS: u64 = NS;
}

impl<I: Interval, A: Advice> sealed::Sealed for Advised<I, A> {
    type Advice = A;
}
impl<I: Interval, A: Advice> Interval for Advised<I, A> {
    const NS: u64 = I::NS;
}
