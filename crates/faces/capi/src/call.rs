//! What the functions of the C interface have in common.

use core::ffi::c_int;
use core::time::Duration;
use libc::timespec;
use ulocks_core::errno::Guard;
use ulocks_core::time::{Clock, Deadline};

/// Fails to compile if the C type `T` cannot hold the lock `L`.
pub(crate) const fn holds<T, L>() {
    assert!(size_of::<L>() <= size_of::<T>(), "the C type is too small");
    assert!(align_of::<L>() <= align_of::<T>(), "the C type is not aligned enough");
}

/// The deadline of a C program, or `EINVAL`.
///
/// A moment before the clock's zero has passed, as the zero has.
///
/// # Safety
/// `deadline` is null or points to a `timespec`.
pub(crate) unsafe fn deadline(deadline: *const timespec) -> Result<Deadline, c_int> {
    // SAFETY: the caller's promise.
    let Some(&timespec { tv_sec, tv_nsec, .. }) = (unsafe { deadline.as_ref() }) else {
        return Err(libc::EINVAL);
    };
    let nanoseconds = u32::try_from(tv_nsec).ok().filter(|&nanoseconds| nanoseconds < 1_000_000_000);
    let nanoseconds = nanoseconds.ok_or(libc::EINVAL)?;
    let since_zero =
        u64::try_from(tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, nanoseconds));
    Ok(Deadline::new(Clock::Monotonic, since_zero))
}

/// A call that may open, read, write or close a file. It leaves `errno` as it is, and is no
/// cancellation point: a pending cancellation stays pending, whatever functions of the C library it
/// calls.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Uncancelled {
    _errno: Guard,
    /// The caller's state. Android has no cancellation.
    #[cfg(not(target_os = "android"))]
    before: c_int,
}

impl Uncancelled {
    pub(crate) fn new() -> Self {
        let _errno = Guard::new();
        Self {
            _errno,
            #[cfg(not(target_os = "android"))]
            before: set_cancel_state(1), // PTHREAD_CANCEL_DISABLE
        }
    }
}

#[cfg(not(target_os = "android"))]
impl Drop for Uncancelled {
    fn drop(&mut self) {
        set_cancel_state(self.before);
    }
}

/// Whether the calling thread can be cancelled from here on. Returns the state before.
#[cfg(not(target_os = "android"))]
fn set_cancel_state(state: c_int) -> c_int {
    unsafe extern "C" {
        /// The libc crate does not have it.
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    let mut before = 0;
    // SAFETY: the place is borrowed. A state that does not exist is refused.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// 0, or the error.
pub(crate) fn code(acquired: bool, otherwise: c_int) -> c_int {
    if acquired { 0 } else { otherwise }
}

/// An acquisition that gives up: `ETIMEDOUT`, or `EINVAL`.
///
/// # Safety
/// `until` is null or points to a `timespec`.
pub(crate) unsafe fn timed(until: *const timespec, acquire: impl FnOnce(Deadline) -> bool) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    match unsafe { deadline(until) } {
        Ok(deadline) => code(acquire(deadline), libc::ETIMEDOUT),
        Err(error) => error,
    }
}
