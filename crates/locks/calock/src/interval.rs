//! How often a passive waiter is promoted.

use crate::advice::{Advice, Advised, Planned};

mod sealed {
    use crate::advice::Advice;

    pub trait Sealed {
        /// The decisions that are not left to the plan.
        type Advice: Advice;
    }
}

/// How long the oldest passive waiter sleeps before the lock is handed over to it. Zero-sized;
/// chosen by type: [`Every`].
pub trait Interval: sealed::Sealed + Send + Sync + 'static {
    /// The time in nanoseconds.
    const NS: u64;
}

/// Every `NS` nanoseconds, by default ten milliseconds.
///
/// A promotion costs a timer, two wake-ups and a sleep. A shorter interval bounds the wait of the
/// others more tightly, and costs more. With a hundred threads at 1 us inside and 9 us outside an
/// operation costs 0.004 sleeps at 1 ms, 0.002 at 10 ms, 0.0005 at 100 ms (two CPUs of a Xeon, 20
/// November 2026, before solo mode).
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
