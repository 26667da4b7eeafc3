//! `sem_t`: glibc's semaphore, with waiters that poll before they sleep (`ULOCKS_SEM=spin`).
//!
//! The semaphore stays glibc's: so `sem_post` may be called in signal handlers, waits are cancelled
//! and interrupted as the program expects, and processes may share it. A wait first polls for some
//! microseconds by `sem_trywait`. That spares a sleep and a wake-up where two threads answer one
//! another. A wait that follows three vain polls does not poll, but for one in sixteen.

use crate::choice::Choice;
use crate::condvar::pthread_testcancel;
use crate::glibc;
use core::ffi::c_int;
use core::hint::spin_loop;
use libc::{clockid_t, sem_t, timespec};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;

/// How long a wait polls: some 5 us.
const ROUNDS: u32 = 40;
/// Pauses between two polls.
const PAUSES: u32 = 8;
/// After so many vain polls waits sleep at once.
const TRIES: u32 = 3;
/// One wait in so many polls all the same.
const PROBE: u32 = 16;

/// Vain polls in a row, in the whole program.
static VAIN: AtomicU32 = AtomicU32::new(0);

/// Whether polling took a permit. `errno` is as it was then. glibc checks a deadline first.
///
/// # Safety
/// As `sem_timedwait`; `deadline` may be null.
unsafe fn polls(semaphore: *mut sem_t, deadline: *const timespec) -> bool {
    // SAFETY: the caller's promise.
    let is_valid = deadline.is_null() || (0..1_000_000_000).contains(unsafe { &(*deadline).tv_nsec });
    if !is_valid || !Choice::get().has_spinning_semaphores() {
        return false;
    }
    let vain = VAIN.load(Relaxed);
    if vain >= TRIES && !vain.is_multiple_of(PROBE) {
        VAIN.store(vain.wrapping_add(1).max(TRIES), Relaxed);
        return false;
    }
    let _errno = ulocks_core::errno::Guard::new();
    for _ in 0..ROUNDS {
        // SAFETY: the caller's promise.
        if unsafe { glibc::sem_trywait(semaphore) } == 0 {
            VAIN.store(0, Relaxed);
            return true;
        }
        (0..PAUSES).for_each(|_| spin_loop());
    }
    VAIN.store(vain.wrapping_add(1), Relaxed);
    false
}

/// # Safety
/// As `sem_wait` of POSIX, and so for the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller's promise. A pending cancellation is acted upon, as in glibc's.
    unsafe {
        pthread_testcancel();
        if polls(semaphore, core::ptr::null()) { 0 } else { glibc::sem_wait(semaphore) }
    }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_timedwait(semaphore: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        pthread_testcancel();
        if polls(semaphore, deadline) { 0 } else { glibc::sem_timedwait(semaphore, deadline) }
    }
}

/// # Safety
/// As glibc says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_clockwait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        pthread_testcancel();
        let polled = crate::time::clock_of(clock).is_some() && polls(semaphore, deadline);
        if polled { 0 } else { glibc::sem_clockwait(semaphore, clock, deadline) }
    }
}
