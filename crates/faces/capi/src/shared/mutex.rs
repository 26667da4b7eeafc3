//! `ulocks_shared_mutex_t`: RawBargingMutex of this family, between processes.

use crate::{call, condvar};
use core::ffi::c_int;
use libc::timespec;
use ulocks_core::Shared;
use ulocks_core::condvar::RawCondvar;
use ulocks_core::errno::Guard;
use ulocks_core::raw::RawMutex as _;
use ulocks_unfair::RawBargingMutex;

type Lock = RawBargingMutex<Shared>;
type Condvar = RawCondvar<Lock>;

const _: () = call::holds::<ulocks_shared_mutex_t, Lock>();
const _: () = call::holds::<ulocks_shared_mutex_cond_t, Condvar>();

/// A mutex of four bytes. Any thread may take it next: no order, and no bound on a wait.
///
/// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
/// thread that unlocks it last may free its memory at once. It may lie in memory that several
/// processes map, at any addresses. If a process dies with it, it stays locked. A thread that locks
/// a mutex that it holds waits for ever.
#[repr(C)]
pub struct ulocks_shared_mutex_t {
    _words: [u32; 1],
}

/// A condition variable for mutexes of the type `ulocks_shared_mutex_t`.
///
/// `ULOCKS_COND_INIT`, or all bytes zero, is one without waiters. It needs no destruction. Its
/// memory may be freed when no thread is inside of one of its functions. It may lie in memory that
/// several processes map, at any addresses.
#[repr(C)]
pub struct ulocks_shared_mutex_cond_t {
    _words: [u64; 2],
}

/// # Safety
/// `mutex` points to a `ulocks_shared_mutex_t` that lives as long as the caller uses what this
/// returns.
unsafe fn of<'a>(mutex: *mut ulocks_shared_mutex_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock, and it is
    // changed by the functions of this file only.
    unsafe { &*mutex.cast() }
}

/// # Safety
/// `cond` points to a `ulocks_shared_mutex_cond_t` that lives as long as the caller uses what this
/// returns.
unsafe fn cond_of<'a>(cond: *mut ulocks_shared_mutex_cond_t) -> &'a Condvar {
    // SAFETY: as in `of`.
    unsafe { &*cond.cast() }
}

/// Locks the mutex, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_lock(mutex: *mut ulocks_shared_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    call::lock(unsafe { of(mutex) })
}

/// Locks the mutex if that needs no waiting.
///
/// Returns 0, or EBUSY: a thread holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_trylock(mutex: *mut ulocks_shared_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    call::trylock(unsafe { of(mutex) })
}

/// Locks the mutex, or gives up at a moment of CLOCK_MONOTONIC. It tries at least once.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_lock_until(
    mutex: *mut ulocks_shared_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::lock_until(of(mutex), monotonic_deadline) }
}

/// Unlocks the mutex. The calling thread must hold it. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_unlock(mutex: *mut ulocks_shared_mutex_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(mutex).unlock(()) };
    0
}

/// Whether a thread holds the mutex at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_is_locked(mutex: *const ulocks_shared_mutex_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(mutex.cast_mut()) }.is_locked()
}

/// Unlocks the mutex, waits until notified, and locks the mutex again. The calling thread must hold
/// the mutex.
///
/// No notification is missed that comes after the unlocking. A wait may end without one, so look at
/// the condition again. It is no cancellation point. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_cond_wait(
    cond: *mut ulocks_shared_mutex_cond_t,
    mutex: *mut ulocks_shared_mutex_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { condvar::wait(cond_of(cond), of(mutex)) }
}

/// As ulocks_shared_mutex_cond_wait, but gives up at a moment of CLOCK_MONOTONIC.
/// The mutex is locked again in every case.
///
/// Returns 0; ETIMEDOUT: the moment has passed, and no notification came; EINVAL: the pointer to
/// the moment is null, or its tv_nsec is not from 0 to 999999999, and the mutex was not unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_cond_wait_until(
    cond: *mut ulocks_shared_mutex_cond_t,
    mutex: *mut ulocks_shared_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { condvar::wait_until(cond_of(cond), of(mutex), monotonic_deadline) }
}

/// Notifies one thread that waits, with or without the mutex locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_cond_signal(cond: *mut ulocks_shared_mutex_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    condvar::signal(unsafe { cond_of(cond) })
}

/// Notifies all threads that wait, with or without the mutex locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_shared_mutex_cond_broadcast(cond: *mut ulocks_shared_mutex_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    condvar::broadcast(unsafe { cond_of(cond) })
}
