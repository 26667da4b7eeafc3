//! How long a call of `pthread.h` waits, and how it acquires within that time.

use crate::choice::Choice;
use crate::stats;
use core::ffi::c_int;
use core::ptr;
use core::time::Duration;
use libc::{clockid_t, timespec};
use ulocks_core::time::{Clock, Deadline};

/// How long a call waits.
#[derive(Clone, Copy)]
pub enum Patience {
    /// As long as it takes.
    Forever,
    /// Not at all.
    Never,
    /// Until a moment on a clock. The moment is read only if the call has to wait, as in glibc.
    Until(Clock, *const timespec),
}

impl Patience {
    /// Until a moment on a clock that the caller names. `None` for a clock without waits.
    pub fn on(clock: clockid_t, deadline: *const timespec) -> Option<Self> {
        clock_of(clock).map(|clock| Self::Until(clock, deadline))
    }
}

/// The clock of a number.
pub fn clock_of(clock: clockid_t) -> Option<Clock> {
    match clock {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// The deadline, or `EINVAL`, or `ETIMEDOUT` for a moment before the clock's zero.
///
/// # Safety
/// `deadline` points to a `timespec`.
pub unsafe fn deadline(clock: Clock, deadline: *const timespec) -> Result<Deadline, c_int> {
    // SAFETY: the caller's promise.
    let timespec { tv_sec, tv_nsec, .. } = unsafe { *deadline };
    let nanoseconds = u32::try_from(tv_nsec).ok().filter(|&nanoseconds| nanoseconds < 1_000_000_000);
    let nanoseconds = nanoseconds.ok_or(libc::EINVAL)?;
    let seconds = u64::try_from(tv_sec).map_err(|_| libc::ETIMEDOUT)?;
    Ok(Deadline::new(clock, Duration::new(seconds, nanoseconds)))
}

/// Sleeps for 50 us, between two looks at what another thread does.
///
/// glibc's `nanosleep` is a cancellation point, which POSIX forbids `pthread_spin_lock` and
/// `pthread_cond_destroy` to be. The same call of the kernel is none.
pub fn nap() {
    let time = timespec { tv_sec: 0, tv_nsec: 50_000 };
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: the first argument is a `timespec`, which the kernel reads. The second says that it
    // need not write what is left of the time.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<timespec>()) };
}

/// Acquires a lock by `attempt`, and then by `wait`, which returns false if the deadline passed.
/// Keeps statistics of it.
///
/// # Safety
/// A deadline points to a `timespec`.
#[inline(always)]
pub unsafe fn acquire(
    choice: Choice,
    address: usize,
    patience: Patience,
    attempt: impl Fn() -> bool,
    wait: impl Fn(Option<Deadline>) -> bool,
) -> c_int {
    if !choice.has_stats() && matches!(patience, Patience::Forever) {
        wait(None);
        return 0;
    }
    let result = if attempt() {
        0
    } else {
        let _contended = stats::Contended::begin(choice, address, patience);
        match patience {
            Patience::Never => libc::EBUSY,
            Patience::Forever => {
                wait(None);
                0
            }
            // SAFETY: the caller's promise.
            Patience::Until(clock, deadline) => match unsafe { self::deadline(clock, deadline) } {
                Err(error) => error,
                Ok(deadline) if wait(Some(deadline)) => 0,
                Ok(_) => libc::ETIMEDOUT,
            },
        }
    };
    if choice.has_stats() && result == 0 {
        stats::acquired(address);
    }
    result
}
