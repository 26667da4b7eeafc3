//! `ulocks_asym_mutex_t`: RawAsymMutex of this family.

use crate::{call, condvar};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::timespec;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::errno::Guard;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_unfair::RawAsymMutex;

/// What an acquisition hands to its release.
type Pass = <RawAsymMutex as RawMutex>::Token;
type Condvar = RawCondvar<RawAsymMutex>;

/// The mutex, and how its holder releases it.
#[repr(C)]
struct Lock {
    raw: RawAsymMutex,
    /// Written by each holder before it is read. Only holders touch it.
    pass: UnsafeCell<MaybeUninit<Pass>>,
}

impl Lock {
    /// Keeps the pass of the acquisition until the release.
    ///
    /// # Safety
    /// The calling thread holds the mutex, by this pass.
    unsafe fn keep(&self, pass: Pass) {
        // SAFETY: only the holder touches the cell, and that is this thread.
        unsafe { (*self.pass.get()).write(pass) };
    }

    /// The pass of the acquisition, for one release.
    ///
    /// # Safety
    /// The calling thread holds the mutex.
    unsafe fn pass(&self) -> Pass {
        // SAFETY: only the holder touches the cell, and that is this thread. It has kept its pass
        // there when it acquired.
        unsafe { (*self.pass.get()).assume_init() }
    }

    /// # Safety
    /// The calling thread holds the mutex.
    unsafe fn wait(&self, condvar: &Condvar, deadline: Option<Deadline>) -> c_int {
        // SAFETY: this thread holds the mutex, by this pass, and again after the wait.
        unsafe {
            let (pass, wakeup) = condvar.wait(&self.raw, self.pass(), deadline);
            self.keep(pass);
            call::code(wakeup == Wakeup::Notified, libc::ETIMEDOUT)
        }
    }
}

const _: () = call::holds::<ulocks_asym_mutex_t, Lock>();
const _: () = call::holds::<ulocks_asym_mutex_cond_t, Condvar>();

/// A mutex for critical sections that are mostly free: one atomic operation for a lock and unlock
/// instead of two. A thread that has to sleep pays for that. Any thread may take it next: no order,
/// and no bound on a wait.
///
/// The first unlocking of the process registers it with the kernel: quick with one thread, tens of
/// milliseconds later.
///
/// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
/// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
/// that locks a mutex that it holds waits for ever. Two copies of this library in one process (a
/// plugin that links its own) must not share one.
#[repr(C)]
pub struct ulocks_asym_mutex_t {
    _words: [u64; 2],
}

/// A condition variable for mutexes of the type `ulocks_asym_mutex_t`.
///
/// `ULOCKS_COND_INIT`, or all bytes zero, is one without waiters. It needs no destruction. Its
/// memory may be freed when no thread is inside of one of its functions.
#[repr(C)]
pub struct ulocks_asym_mutex_cond_t {
    _words: [u64; 2],
}

/// # Safety
/// `mutex` points to a `ulocks_asym_mutex_t` that lives as long as the caller uses what this
/// returns.
unsafe fn of<'a>(mutex: *mut ulocks_asym_mutex_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock, and it is
    // changed by the functions of this file only.
    unsafe { &*mutex.cast() }
}

/// # Safety
/// `cond` points to a `ulocks_asym_mutex_cond_t` that lives as long as the caller uses what this
/// returns.
unsafe fn cond_of<'a>(cond: *mut ulocks_asym_mutex_cond_t) -> &'a Condvar {
    // SAFETY: as in `of`.
    unsafe { &*cond.cast() }
}

/// Locks the mutex, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_lock(mutex: *mut ulocks_asym_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let mutex = unsafe { of(mutex) };
    let pass = mutex.raw.try_lock().unwrap_or_else(|| {
        let _errno = Guard::new();
        mutex.raw.lock()
    });
    // SAFETY: acquired above.
    unsafe { mutex.keep(pass) };
    0
}

/// Locks the mutex if that needs no waiting.
///
/// Returns 0, or EBUSY: a thread holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_trylock(mutex: *mut ulocks_asym_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let mutex = unsafe { of(mutex) };
    let pass = mutex.raw.try_lock();
    // SAFETY: acquired above.
    call::code(pass.map(|pass| unsafe { mutex.keep(pass) }).is_some(), libc::EBUSY)
}

/// Locks the mutex, or gives up at a moment of CLOCK_MONOTONIC. It tries at least once.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_lock_until(
    mutex: *mut ulocks_asym_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let mutex = unsafe { of(mutex) };
    let acquire = |deadline| {
        let pass = mutex.raw.lock_until(deadline);
        // SAFETY: acquired above.
        pass.map(|pass| unsafe { mutex.keep(pass) }).is_some()
    };
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, acquire) }
}

/// Unlocks the mutex. The calling thread must hold it. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_unlock(mutex: *mut ulocks_asym_mutex_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise. The release is the last touch.
    unsafe {
        let mutex = of(mutex);
        mutex.raw.unlock(mutex.pass());
    }
    0
}

/// Whether a thread holds the mutex at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_is_locked(mutex: *const ulocks_asym_mutex_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(mutex.cast_mut()) }.raw.is_locked()
}

/// Unlocks the mutex, waits until notified, and locks the mutex again. The calling thread must hold
/// the mutex.
///
/// No notification is missed that comes after the unlocking. A wait may end without one, so look at
/// the condition again. It is no cancellation point. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_cond_wait(
    cond: *mut ulocks_asym_mutex_cond_t,
    mutex: *mut ulocks_asym_mutex_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(mutex).wait(cond_of(cond), None) }
}

/// As ulocks_asym_mutex_cond_wait, but gives up at a moment of CLOCK_MONOTONIC.
/// The mutex is locked again in every case.
///
/// Returns 0; ETIMEDOUT: the moment has passed, and no notification came; EINVAL: the pointer to
/// the moment is null, or its tv_nsec is not from 0 to 999999999, and the mutex was not unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_cond_wait_until(
    cond: *mut ulocks_asym_mutex_cond_t,
    mutex: *mut ulocks_asym_mutex_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe {
        match call::deadline(monotonic_deadline) {
            Ok(deadline) => of(mutex).wait(cond_of(cond), Some(deadline)),
            Err(error) => error,
        }
    }
}

/// Notifies one thread that waits, with or without the mutex locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_cond_signal(cond: *mut ulocks_asym_mutex_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    condvar::signal(unsafe { cond_of(cond) })
}

/// Notifies all threads that wait, with or without the mutex locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_asym_mutex_cond_broadcast(cond: *mut ulocks_asym_mutex_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    condvar::broadcast(unsafe { cond_of(cond) })
}
