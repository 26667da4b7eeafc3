//! How long a waiter is overtaken before it reserves the mutex.

mod sealed {
    pub trait Sealed {}
}

/// How long the waiter whose turn it is lets others overtake it, before the mutex is kept for it.
/// Zero-sized; chosen by type: [`After`] or [`HandOff`].
pub trait Bound: sealed::Sealed + Send + Sync + 'static {
    /// The time in nanoseconds.
    const NS: u64;
}

/// After `NS` nanoseconds, by default one millisecond. Others acquire the mutex meanwhile, so it
/// loses the time of one wake-up in `NS` to this; a shorter bound costs more.
#[derive(Debug)]
pub enum After<const NS: u64 = 1_000_000> {}

/// At once: a waiter that was woken and finds the mutex taken again is the next to get it. Long's
/// hand-off.
#[derive(Debug)]
pub enum HandOff {}

impl<const NS: u64> sealed::Sealed for After<NS> {}
impl<const NS: u64> Bound for After<NS> {
    const NS: u64 = NS;
}

impl sealed::Sealed for HandOff {}
impl Bound for HandOff {
    const NS: u64 = 0;
}
