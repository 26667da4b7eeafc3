//! How long a waiter is overtaken before it reserves the mutex.

mod sealed {
    pub trait Sealed {}
}

/// How long others may overtake the head waiter before the mutex is reserved for it. Zero-sized;
/// chosen by type: [`After`] or [`HandOff`].
pub trait Bound: sealed::Sealed + Send + Sync + 'static {
    /// The time in nanoseconds.
    const NS: u64;
}

/// After `NS` nanoseconds, by default 100 us. A reservation idles the mutex for the time of one
/// wake-up, once in `NS`, if the holder still holds it when the waiter has polled for 40 us. So a
/// shorter bound costs more where sections are long.
#[derive(Debug)]
pub enum After<const NS: u64 = 100_000> {}

/// At once: a woken waiter that finds the mutex taken is the next to acquire it. Long's hand-off.
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
