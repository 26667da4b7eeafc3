//! `ulocks_semaphore_t`: RawSemaphore of this family.

use crate::call;
use core::ffi::c_int;
use libc::timespec;
use ulocks_core::errno::Guard;
use ulocks_fair::RawSemaphore;

type Lock = RawSemaphore;

const _: () = call::holds::<ulocks_semaphore_t, Lock>();

// What `ULOCKS_SEMAPHORE_INIT` of the header writes.
const _: () = {
    // SAFETY: two words and no padding, as `holds` and the next line say.
    let words: [u64; 2] = unsafe { core::mem::transmute(Lock::new(5)) };
    assert!(words[0] == 5 && words[1] == 0);
};

/// A counting semaphore. Threads get permits in the order in which they came.
///
/// `ULOCKS_SEMAPHORE_INIT(n)` has n permits, all bytes zero has none. It needs no destruction. Its
/// memory may be freed when no thread is inside of one of its functions. It belongs to one process.
/// At most 65523 threads may wait at once; one more ends the process.
#[repr(C)]
pub struct ulocks_semaphore_t {
    _words: [u64; 2],
}

/// # Safety
/// `semaphore` points to an initialised semaphore that lives as long as the caller uses what this
/// returns.
unsafe fn of<'a>(semaphore: *mut ulocks_semaphore_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock, and it is
    // changed by the functions of this file only.
    unsafe { &*semaphore.cast() }
}

/// Makes a semaphore with this many permits of memory with any content.
///
/// Returns 0, or EINVAL: more than 1073741823 permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_init(semaphore: *mut ulocks_semaphore_t, permits: u32) -> c_int {
    if permits > Lock::MAX_PERMITS {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise; the type can hold the lock.
    unsafe { semaphore.cast::<Lock>().write(Lock::new(permits)) };
    0
}

/// Takes this many permits together, and waits as long as that takes. Zero permits need no waiting.
///
/// Returns 0, or EINVAL: more than 1073741823 permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_acquire(semaphore: *mut ulocks_semaphore_t, count: u32) -> c_int {
    let _errno = Guard::new();
    if count > Lock::MAX_PERMITS {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe { of(semaphore) }.acquire(count);
    0
}

/// Takes this many permits together if that needs no waiting.
///
/// Returns 0; EBUSY: there are fewer permits, or other threads wait; EINVAL: more than 1073741823
/// permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_tryacquire(
    semaphore: *mut ulocks_semaphore_t,
    count: u32,
) -> c_int {
    let _errno = Guard::new();
    if count > Lock::MAX_PERMITS {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    call::code(unsafe { of(semaphore) }.try_acquire(count), libc::EBUSY)
}

/// Takes this many permits together, or gives up at a moment of CLOCK_MONOTONIC. It tries at least
/// once.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: more than 1073741823 permits, or the
/// pointer to the moment is null, or its tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_acquire_until(
    semaphore: *mut ulocks_semaphore_t,
    count: u32,
    monotonic_deadline: *const timespec,
) -> c_int {
    if count > Lock::MAX_PERMITS {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, |deadline| of(semaphore).acquire_until(count, deadline)) }
}

/// Puts this many permits in. It never waits. Any thread may do so.
///
/// Returns 0, or EOVERFLOW: there would be more than 1073741823 permits; nothing has changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_release(semaphore: *mut ulocks_semaphore_t, count: u32) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    call::code(unsafe { of(semaphore) }.release(count).is_ok(), libc::EOVERFLOW)
}

/// How many permits are free at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_available(semaphore: *const ulocks_semaphore_t) -> u32 {
    // SAFETY: the caller's promise. The semaphore is only read.
    unsafe { of(semaphore.cast_mut()) }.available()
}
