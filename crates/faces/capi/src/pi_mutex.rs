//! The mutex with priority inheritance, and its condition variable.

use crate::call;
use core::ffi::c_int;
use libc::timespec;
use ulocks_core::condvar::Wakeup;
use ulocks_core::errno::Guard;
use ulocks_core::futex::PiError;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, tid};
use ulocks_pi::{RawPiCondvar, RawPiMutex, Taken};

/// The number of an error.
fn number(error: PiError) -> c_int {
    match error {
        PiError::TimedOut => libc::ETIMEDOUT,
        PiError::Deadlock => libc::EDEADLK,
        PiError::OwnerGone => libc::ENOTRECOVERABLE,
        PiError::NotPermitted => libc::EPERM,
        PiError::OutOfMemory => libc::ENOMEM,
        PiError::Unsupported => libc::ENOSYS,
        _ => libc::EINVAL,
    }
}

fn acquired(result: Result<Taken, PiError>) -> c_int {
    match result {
        Ok(Taken::Sound) => 0,
        Ok(Taken::OwnerDied) => libc::EOWNERDEAD,
        Err(error) => number(error),
    }
}

/// Whether the calling thread holds the mutex.
fn is_mine(mutex: &Lock) -> bool {
    mutex.state().owner() == tid::current()
}

fn wait(cond: &Condvar, mutex: &Lock, deadline: Option<Deadline>) -> c_int {
    if !is_mine(mutex) {
        return libc::EPERM;
    }
    // SAFETY: this thread holds it.
    match unsafe { cond.wait(mutex, deadline) } {
        Ok((Taken::Sound, Wakeup::TimedOut)) => libc::ETIMEDOUT,
        Ok((taken, _)) => acquired(Ok(taken)),
        Err(error) => number(error),
    }
}

type Lock = RawPiMutex<Private>;
type Condvar = RawPiCondvar<Private>;

const _: () = call::holds::<ulocks_pi_mutex_t, Lock>();
const _: () = call::holds::<ulocks_pi_mutex_cond_t, Condvar>();

/// A mutex of four bytes with priority inheritance. The thread that holds it runs with the highest
/// priority of those that wait for it. It belongs to one process.
///
/// The errors of its functions, beside those of all mutexes: EOWNERDEAD: the mutex is locked, but
/// the thread that held it has ended without unlocking; EDEADLK: the calling thread holds it
/// already, or a thread that waits for the calling thread does; ENOTRECOVERABLE: the thread that
/// holds it has ended, and no thread waited then; EPERM or EINVAL: the memory has been overwritten;
/// ENOMEM or ENOSYS: the kernel has no memory, or no priority inheritance.
#[repr(C)]
pub struct ulocks_pi_mutex_t {
    _words: [u32; 1],
}

/// A condition variable for one ulocks_pi_mutex_t. It notifies the thread of the highest priority
/// first.
#[repr(C)]
pub struct ulocks_pi_mutex_cond_t {
    _words: [u32; 2],
}

/// # Safety
/// `mutex` points to one that lives as long as the caller uses what this returns.
unsafe fn of<'a>(mutex: *const ulocks_pi_mutex_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the
    // lock, and it is changed by the functions of this crate only.
    unsafe { &*mutex.cast() }
}

/// # Safety
/// `cond` points to one that lives as long as the caller uses what this returns.
unsafe fn cond_of<'a>(cond: *const ulocks_pi_mutex_cond_t) -> &'a Condvar {
    // SAFETY: as in `of`.
    unsafe { &*cond.cast() }
}

/// Locks the mutex, and waits as long as that takes. The errors: see ulocks_pi_mutex_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_lock(mutex: *mut ulocks_pi_mutex_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    acquired(unsafe { of(mutex) }.acquire(None))
}

/// Locks the mutex if that needs no waiting. EBUSY: a thread holds it; this one, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_trylock(mutex: *mut ulocks_pi_mutex_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    match unsafe { of(mutex) }.try_acquire() {
        Ok(None) => libc::EBUSY,
        Ok(Some(taken)) => acquired(Ok(taken)),
        Err(error) => number(error),
    }
}

/// Locks the mutex, or gives up at a moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_lock_until(
    mutex: *mut ulocks_pi_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe {
        match call::deadline(monotonic_deadline) {
            Ok(deadline) => acquired(of(mutex).acquire(Some(deadline))),
            Err(error) => error,
        }
    }
}

/// Unlocks the mutex. Returns 0, or EPERM: the calling thread does not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_unlock(mutex: *mut ulocks_pi_mutex_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let mutex = unsafe { of(mutex) };
    if !is_mine(mutex) {
        return libc::EPERM;
    }
    // SAFETY: this thread holds it.
    unsafe { mutex.unlock(()) };
    0
}

/// Whether a thread holds the mutex at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_is_locked(mutex: *const ulocks_pi_mutex_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(mutex) }.is_locked()
}

/// As ulocks_mutex_cond_wait. All waits use the same mutex. EPERM: the calling thread does not hold
/// it. The mutex is locked again after 0 and EOWNERDEAD only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_cond_wait(
    cond: *mut ulocks_pi_mutex_cond_t,
    mutex: *mut ulocks_pi_mutex_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { wait(cond_of(cond), of(mutex), None) }
}

/// The same, until a moment. The mutex is locked again after ETIMEDOUT, too. After EINVAL it may be
/// that it was not unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_cond_wait_until(
    cond: *mut ulocks_pi_mutex_cond_t,
    mutex: *mut ulocks_pi_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe {
        match call::deadline(monotonic_deadline) {
            Ok(deadline) => wait(cond_of(cond), of(mutex), Some(deadline)),
            Err(error) => error,
        }
    }
}

/// Notifies the waiter of the highest priority. The mutex is that of the waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_cond_signal(
    cond: *mut ulocks_pi_mutex_cond_t,
    mutex: *mut ulocks_pi_mutex_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { cond_of(cond).notify_one(of(mutex)) }.map_or_else(number, |_| 0)
}

/// Notifies all threads that wait. The mutex is that of the waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_pi_mutex_cond_broadcast(
    cond: *mut ulocks_pi_mutex_cond_t,
    mutex: *mut ulocks_pi_mutex_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { cond_of(cond).notify_all(of(mutex)) }.map_or_else(number, |_| 0)
}
