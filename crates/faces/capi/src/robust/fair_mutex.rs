//! `ulocks_robust_fair_mutex_t`.

use super::{code, cond_of, consistent, refused, ulocks_robust_cond_t, unlock, until, wait, with};
use crate::call;
use crate::region::{me, named, ulocks_member_t, ulocks_region_t};
use core::ffi::{c_char, c_int};
use core::mem::forget;
use libc::timespec;
use ulocks_shm::robust::fair_mutex::RobustFairMutex;

type Lock = RobustFairMutex<()>;

const _: () = call::holds::<ulocks_robust_fair_mutex_t, Lock>();

/// A mutex in a region that goes to the next thread if its holder dies, in order of arrival.
#[repr(C)]
pub struct ulocks_robust_fair_mutex_t {
    _words: [u64; 4],
}

/// # Safety
/// The pointer is valid.
unsafe fn of<'a>(mutex: *const ulocks_robust_fair_mutex_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock.
    unsafe { &*mutex.cast() }
}

/// Finds the fair mutex of a name in a region, or makes it, unlocked.
///
/// Returns what ulocks_region_robust_mutex does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_robust_fair_mutex(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    mutex: *mut *mut ulocks_robust_fair_mutex_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { named::<Lock, _>(region, member, name, mutex) }
}

/// Locks the mutex, and waits as long as that takes.
///
/// Returns 0; EOWNERDEAD: locked, but the last holder died with it, so repair the data and call
/// ulocks_robust_fair_mutex_consistent; ENOTRECOVERABLE: not locked, because the mutex was unlocked
/// without that; EDEADLK: the thread holds it; EINVAL: the mutex is not in the member's region, or
/// the member is that of another process; EBADMSG: the memory was overwritten.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_lock(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    with(unsafe { of(mutex) }, unsafe { me(member) }, |mutex, me| code(mutex.lock(me), libc::ETIMEDOUT))
}

/// Locks the mutex if that needs no waiting.
///
/// Returns what ulocks_robust_fair_mutex_lock does, or EBUSY: a living thread holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_trylock(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    with(unsafe { of(mutex) }, unsafe { me(member) }, |mutex, me| code(mutex.try_lock(me), libc::EBUSY))
}

/// Locks the mutex, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns what ulocks_robust_fair_mutex_lock does; ETIMEDOUT: the moment has passed; EINVAL also:
/// the pointer to the moment is null, or its tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_lock_until(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { until(of(mutex), me(member), monotonic_deadline) }
}

/// Unlocks the mutex, which the calling thread must hold. If the last holder died, and the data was
/// not said to be consistent, the mutex is not recoverable from here on.
///
/// Returns 0; EPERM: the thread holds no robust lock; EINVAL: as ulocks_robust_fair_mutex_lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_unlock(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { unlock(of(mutex), me(member)) }
}

/// Says that the data is whole again, after EOWNERDEAD. The calling thread must hold the mutex.
///
/// Returns 0; EINVAL: no holder had died, or as ulocks_robust_fair_mutex_lock; EPERM: the thread
/// holds no robust lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_consistent(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { consistent(of(mutex), me(member)) }
}

/// Locks the mutex although it is not recoverable: the data is dirty until
/// ulocks_robust_fair_mutex_consistent.
///
/// Returns EOWNERDEAD: locked; EDEADLK, EINVAL and EBADMSG: as ulocks_robust_fair_mutex_lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_reset(
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    with(unsafe { of(mutex) }, unsafe { me(member) }, |mutex, me| match mutex.reset(me) {
        Ok(guard) => {
            forget(guard);
            libc::EOWNERDEAD
        }
        Err(why) => refused(why, libc::ETIMEDOUT),
    })
}

/// Unlocks the mutex, waits until notified, and locks the mutex again. A wait may end without a
/// notification, so look at the condition again.
///
/// Returns what ulocks_robust_fair_mutex_lock does: the mutex is locked after 0 and EOWNERDEAD;
/// EPERM: the thread holds no robust lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_cond_wait(
    cond: *mut ulocks_robust_cond_t,
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond_of(cond), of(mutex), me(member), None) }
}

/// As ulocks_robust_fair_mutex_cond_wait, but gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns what that does; ETIMEDOUT: the moment has passed, and the mutex is locked; EINVAL also:
/// the pointer to the moment is null, or its tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_fair_mutex_cond_wait_until(
    cond: *mut ulocks_robust_cond_t,
    mutex: *mut ulocks_robust_fair_mutex_t,
    member: *const ulocks_member_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match call::deadline(monotonic_deadline) {
            Ok(deadline) => wait(cond_of(cond), of(mutex), me(member), Some(deadline)),
            Err(error) => error,
        }
    }
}
