//! Robust locks: a process may be killed while it holds one.

use crate::call;
use crate::region::{me, named, ulocks_member_t, ulocks_region_t, usable};
use core::ffi::{c_char, c_int};
use core::mem::forget;
use libc::timespec;
use ulocks_core::errno::Guard;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{Condvar, LockError, Member, Mutex, Refused};

const _: () = call::holds::<ulocks_robust_cond_t, Condvar>();

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
fn code<G>(result: Result<G, LockError<G>>, timed_out: c_int) -> c_int {
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
fn with<'a, L>(
    lock: &'a L,
    member: &'a Member<'static>,
    operate: impl FnOnce(&'a L, &'a Member<'static>) -> c_int,
) -> c_int {
    let _errno = Guard::new();
    match usable(member) {
        Ok(member) if member.covers(lock) => operate(lock, member),
        Ok(_) => libc::EINVAL,
        Err(error) => error,
    }
}

/// The same with a deadline.
///
/// # Safety
/// `until` is null or points to a `timespec`.
unsafe fn with_until<'a, L>(
    lock: &'a L,
    member: &'a Member<'static>,
    until: *const timespec,
    operate: impl FnOnce(&'a L, &'a Member<'static>, Deadline) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { call::deadline(until) } {
        Ok(deadline) => with(lock, member, |lock, me| operate(lock, me, deadline)),
        Err(error) => error,
    }
}

/// Whether the thread holds any robust lock, without which a release is an error.
fn holds(member: &Member<'static>) -> bool {
    member.held() > 0
}

/// # Safety
/// The calling thread holds the mutex, if it holds any.
unsafe fn unlock<L: RawRobust>(mutex: &Mutex<(), L>, member: &Member<'static>) -> c_int {
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
unsafe fn consistent<L: RawRobust>(mutex: &Mutex<(), L>, member: &Member<'static>) -> c_int {
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
    cond: &Condvar,
    mutex: &Mutex<(), L>,
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
        let mut guard = unsafe { mutex.guard_unchecked(me) };
        let ended = match deadline {
            None => cond.wait(&mut guard).map(|()| true).map_err(|error| error.map(|()| true)),
            Some(deadline) => cond.wait_until(&mut guard, deadline),
        };
        match ended {
            Ok(false) => {
                forget(guard);
                libc::ETIMEDOUT
            }
            Ok(true) => code(Ok(guard), libc::ETIMEDOUT),
            Err(error) => code(Err(error.map(|_| guard)), libc::ETIMEDOUT),
        }
    })
}

/// # Safety
/// The pointer is valid.
unsafe fn cond_of<'a>(cond: *const ulocks_robust_cond_t) -> &'a Condvar {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock.
    unsafe { &*cond.cast() }
}

/// Finds the condition variable of a name in a region, or makes it, without waiters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_robust_cond(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    cond: *mut *mut ulocks_robust_cond_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { named::<Condvar, _>(region, member, name, cond) }
}

/// Notifies the thread that has waited longest. Returns 0; EINVAL: the condition variable is not in
/// the member's region, or the member is that of another process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_cond_signal(
    cond: *mut ulocks_robust_cond_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let (cond, me) = unsafe { (cond_of(cond), me(member)) };
    with(cond, me, |cond, me| {
        cond.notify_one(me);
        0
    })
}

/// Notifies all threads that wait. Returns what ulocks_robust_cond_signal does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_cond_broadcast(
    cond: *mut ulocks_robust_cond_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let (cond, me) = unsafe { (cond_of(cond), me(member)) };
    with(cond, me, |cond, me| {
        cond.notify_all(me);
        0
    })
}

#[macro_use]
mod mutex;

robust_mutex! {
    /// A mutex in a region that goes to the next thread if its holder dies. An arriving thread may
    /// take it past the waiters.
    ///
    /// The errors of its functions, and of ulocks_robust_fair_mutex_t: EOWNERDEAD: locked, but the
    /// last holder died with it, so repair the data and say that it is consistent; ENOTRECOVERABLE:
    /// not locked, because the mutex was unlocked without that; EDEADLK: the thread holds it;
    /// EPERM: the thread holds no robust lock; EINVAL: the mutex is not in the member's region, or
    /// the member is that of another process; EBADMSG: the memory was overwritten.
    ulocks_robust_mutex: ulocks_robust_mutex_t { _words: [u32; 3] },
    ulocks_shm::Mutex<()>, "ulocks_region_robust_mutex", "mutex"
}

robust_mutex! {
    /// The same, in order of arrival.
    ulocks_robust_fair_mutex: ulocks_robust_fair_mutex_t { _words: [u64; 4] },
    ulocks_shm::FairMutex<()>, "ulocks_region_robust_fair_mutex", "fair mutex"
}

mod rwlock;
mod semaphore;
