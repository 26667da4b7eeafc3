//! The condition variables of the mutexes but for `ulocks_pi_mutex_t`.

use crate::call;
use core::ffi::c_int;
use libc::timespec;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::errno::Guard;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;

/// Waits for a notification.
///
/// # Safety
/// The caller holds the mutex.
pub(crate) unsafe fn wait<L: RawMutex<Token = ()>>(condvar: &RawCondvar<L>, mutex: &L) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { finish(condvar, mutex, None) }
}

/// Waits for a notification until a deadline.
///
/// # Safety
/// The caller holds the mutex. `until` is null or points to a `timespec`.
pub(crate) unsafe fn wait_until<L: RawMutex<Token = ()>>(
    condvar: &RawCondvar<L>,
    mutex: &L,
    until: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    match unsafe { call::deadline(until) } {
        // SAFETY: the caller's promise.
        Ok(deadline) => unsafe { finish(condvar, mutex, Some(deadline)) },
        Err(error) => error,
    }
}

/// # Safety
/// The caller holds the mutex.
unsafe fn finish<L: RawMutex<Token = ()>>(
    condvar: &RawCondvar<L>,
    mutex: &L,
    deadline: Option<Deadline>,
) -> c_int {
    // SAFETY: the caller's promise.
    let ((), wakeup) = unsafe { condvar.wait(mutex, (), deadline) };
    call::code(wakeup == Wakeup::Notified, libc::ETIMEDOUT)
}

/// Notifies one waiter.
pub(crate) fn signal<L: RawMutex>(condvar: &RawCondvar<L>) -> c_int {
    let _errno = Guard::new();
    condvar.notify_one();
    0
}

/// Notifies all waiters.
pub(crate) fn broadcast<L: RawMutex>(condvar: &RawCondvar<L>) -> c_int {
    let _errno = Guard::new();
    condvar.notify_all();
    0
}
