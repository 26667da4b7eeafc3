//! `pthread_spinlock_t`: glibc's word, with waiters that do not spin for ever.
//!
//! The word is encoded as in glibc, so that processes with and without this library may share one:
//! on x86-64 it is 1 when it is free and not positive when it is held, elsewhere 0 and 1.
//!
//! A waiter polls for some microseconds, as the users of a spinlock expect. Then the holder is
//! probably preempted, and the waiter leaves it the CPU: it sleeps for 50 us between polls. With
//! more threads than CPUs glibc's waiters use up their time slices.

use crate::choice::{Algorithm, Choice};
use crate::time;
use core::ffi::c_int;
use libc::pthread_spinlock_t;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, pause};

const FREE: u32 = if cfg!(target_arch = "x86_64") { 1 } else { 0 };
const HELD: u32 = 1 - FREE;

/// About as long as a sleep and a wake-up take.
const POLLS: u32 = 200;

/// # Safety
/// `lock` points to a spinlock that is initialised, and lives as long as the caller uses what this
/// returns.
unsafe fn word<'a>(lock: *mut pthread_spinlock_t) -> &'a AtomicU32 {
    // SAFETY: the caller's promise; a spinlock is an aligned `int`.
    unsafe { &*lock.cast() }
}

fn try_take(word: &AtomicU32) -> bool {
    // Acquire: pairs with the release in `pthread_spin_unlock`.
    word.load(Relaxed) == FREE && word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
}

/// # Safety
/// As `pthread_spin_init` of POSIX, and so for the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_init(lock: *mut pthread_spinlock_t, _shared: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { word(lock) }.store(FREE, Relaxed);
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_destroy(_lock: *mut pthread_spinlock_t) -> c_int {
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's promise.
    let word = unsafe { word(lock) };
    // Acquire: as in `try_take`.
    if word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
        lock_contended(word);
    }
    0
}

#[cold]
fn lock_contended(word: &AtomicU32) {
    let sleeps = Choice::get().mutex() != Algorithm::Glibc;
    loop {
        for _ in 0..POLLS {
            if try_take(word) {
                return;
            }
            pause();
        }
        if sleeps {
            time::nap();
        }
    }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's promise.
    if try_take(unsafe { word(lock) }) { 0 } else { libc::EBUSY }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int {
    // Release: pairs with the acquire of the next holder.
    // SAFETY: the caller's promise.
    unsafe { word(lock) }.store(FREE, Release);
    0
}
