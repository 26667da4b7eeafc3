//! Robust locks: a process may be killed while it holds one.

mod fair_mutex;
mod mutex;
mod rwlock;
mod semaphore;

use crate::call;
use crate::region::{me, named, ulocks_member_t, ulocks_region_t, usable};
use core::ffi::{c_char, c_int};
use core::mem::forget;
use libc::timespec;
use ulocks_core::errno::Guard;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::robust::condvar::RobustCondvar;
use ulocks_shm::robust::mutex::{LockError, LockResult, Refused, RobustMutex};
use ulocks_shm::slots::Member;

const _: () = call::holds::<ulocks_robust_cond_t, RobustCondvar>();

/// A condition variable in a region, for either mutex.
#[repr(C)]
pub struct ulocks_robust_cond_t {
    _words: [u64; 2],
}

fn refused(why: Refused, timed_out: c_int) -> c_int {
    match why {
        Refused::TimedOut => timed_out,
        Refused::Deadlock => libc::EDEADLK,
        Refused::NoRoom { .. } => libc::EAGAIN,
        _ => libc::EBADMSG,
    }
}

/// The number of a result. The lock stays with the thread, as C's functions have it.
fn code<L: RawRobust>(result: LockResult<'_, (), L>, timed_out: c_int) -> c_int {
    match result {
        Ok(guard) => {
            forget(guard);
            0
        }
        Err(LockError::OwnerDied(guard)) => {
            forget(guard);
            libc::EOWNERDEAD
        }
        Err(LockError::NotRecoverable) => libc::ENOTRECOVERABLE,
        Err(LockError::Refused(why)) => refused(why, timed_out),
        Err(_) => libc::EBADMSG,
    }
}

/// Runs `operate` if the member may use the lock.
fn checked<'a, L>(
    lock: &L,
    member: &'a Member<'static>,
    operate: impl FnOnce(&'a Member<'static>) -> c_int,
) -> c_int {
    match usable(member) {
        Ok(member) if member.covers(lock) => operate(member),
        Ok(_) => libc::EINVAL,
        Err(error) => error,
    }
}

/// Runs `acquire` if the member may use the mutex.
fn with<'a, L: RawRobust>(
    mutex: &'a RobustMutex<(), L>,
    member: &'a Member<'static>,
    acquire: impl FnOnce(&'a RobustMutex<(), L>, &'a Member<'static>) -> c_int,
) -> c_int {
    let _errno = Guard::new();
    checked(mutex, member, |member| acquire(mutex, member))
}

/// # Safety
/// `deadline` is null or points to a `timespec`.
unsafe fn until<L: RawRobust>(
    mutex: &RobustMutex<(), L>,
    member: &Member<'static>,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { call::deadline(deadline) } {
        Ok(deadline) => {
            with(mutex, member, |mutex, me| code(mutex.lock_until(me, deadline), libc::ETIMEDOUT))
        }
        Err(error) => error,
    }
}

/// Whether the thread holds any robust lock, without which a release is an error.
fn holds(member: &Member<'static>) -> bool {
    member.held() > 0
}

/// # Safety
/// The calling thread holds the mutex, if it holds any.
unsafe fn unlock<L: RawRobust>(mutex: &RobustMutex<(), L>, member: &Member<'static>) -> c_int {
    with(mutex, member, |mutex, me| {
        if !holds(me) || !mutex.is_locked() {
            return libc::EPERM;
        }
        // SAFETY: the caller's promise; the guard of the acquisition was forgotten.
        drop(unsafe { mutex.guard_unchecked(me) });
        0
    })
}

/// # Safety
/// The calling thread holds the mutex, if it holds any.
unsafe fn consistent<L: RawRobust>(mutex: &RobustMutex<(), L>, member: &Member<'static>) -> c_int {
    with(mutex, member, |mutex, me| {
        if !holds(me) || !mutex.is_locked() {
            return libc::EPERM;
        }
        // SAFETY: the caller's promise; the guard is forgotten again.
        let mut guard = unsafe { mutex.guard_unchecked(me) };
        let code = if guard.is_dirty() { 0 } else { libc::EINVAL };
        guard.mark_consistent();
        forget(guard);
        code
    })
}

/// # Safety
/// The calling thread holds the mutex, if it holds any.
unsafe fn wait<L: RawRobust>(
    cond: &RobustCondvar,
    mutex: &RobustMutex<(), L>,
    member: &Member<'static>,
    deadline: Option<Deadline>,
) -> c_int {
    with(mutex, member, |mutex, me| {
        if !me.covers(cond) {
            return libc::EINVAL;
        }
        if !holds(me) || !mutex.is_locked() {
            return libc::EPERM;
        }
        // SAFETY: the caller's promise; the guard of the acquisition was forgotten.
        let guard = unsafe { mutex.guard_unchecked(me) };
        match deadline {
            None => code(cond.wait(guard), libc::ETIMEDOUT),
            Some(deadline) => match cond.wait_until(guard, deadline) {
                Ok((guard, is_notified)) => {
                    forget(guard);
                    if is_notified { 0 } else { libc::ETIMEDOUT }
                }
                Err(error) => code(Err(error), libc::ETIMEDOUT),
            },
        }
    })
}

/// # Safety
/// The pointer is valid.
unsafe fn cond_of<'a>(cond: *const ulocks_robust_cond_t) -> &'a RobustCondvar {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock.
    unsafe { &*cond.cast() }
}

/// Finds the condition variable of a name in a region, or makes it, without waiters.
///
/// Returns what ulocks_region_robust_mutex does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_robust_cond(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    cond: *mut *mut ulocks_robust_cond_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { named::<RobustCondvar, _>(region, member, name, cond) }
}

/// Notifies the thread that has waited longest. Returns 0; EINVAL: the condition variable is not in
/// the member's region, or the member is that of another process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_cond_signal(
    cond: *mut ulocks_robust_cond_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    notify(unsafe { cond_of(cond) }, unsafe { me(member) }, |cond, me| _ = cond.notify_one(me))
}

/// Notifies all threads that wait. Returns what ulocks_robust_cond_signal does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_cond_broadcast(
    cond: *mut ulocks_robust_cond_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    notify(unsafe { cond_of(cond) }, unsafe { me(member) }, |cond, me| _ = cond.notify_all(me))
}

fn notify(
    cond: &RobustCondvar,
    member: &Member<'static>,
    notify: impl FnOnce(&RobustCondvar, &Member<'static>),
) -> c_int {
    let _errno = Guard::new();
    checked(cond, member, |me| {
        notify(cond, me);
        0
    })
}
