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
