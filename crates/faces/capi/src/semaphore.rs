//! The semaphore.

use crate::call;
use core::ffi::c_int;
use libc::timespec;
use ulocks_core::errno::Guard;
use ulocks_fair::RawSemaphore;

type Lock = RawSemaphore;

const _: () = call::holds::<ulocks_semaphore_t, Lock>();

// What `ULOCKS_SEMAPHORE_INIT` of the header writes.
const _: () = {
    // SAFETY: three words and no padding, as `holds` and the next line say.
    let words: [u64; 3] = unsafe { core::mem::transmute(Lock::new(5)) };
    assert!(words[0] == 5 && words[1] == 0 && words[2] == 0);
};

/// A counting semaphore. Threads get permits in the order in which they came.
///
/// `ULOCKS_SEMAPHORE_INIT(n)` has n permits; all bytes zero has none. More than 1073741823 are the
/// error EINVAL. It belongs to one process.
#[repr(C)]
pub struct ulocks_semaphore_t {
    _words: [u64; 3],
}

/// # Safety
/// `semaphore` points to one that lives as long as the caller uses what this returns.
unsafe fn of<'a>(semaphore: *const ulocks_semaphore_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the
    // lock, and it is changed by the functions of this crate only.
    unsafe { &*semaphore.cast() }
}

/// Makes a semaphore with this many permits of memory with any content. EINVAL: they are more than
/// 1073741823.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semaphore_init(semaphore: *mut ulocks_semaphore_t, permits: u32) -> c_int {
    if permits > Lock::MAX_PERMITS {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise; the type can hold the lock.
    unsafe { semaphore.cast::<Lock>().write(Lock::new(permits)) };
    0
}

/// Takes this many permits together, and waits as long as that takes. Zero permits need
/// no waiting. EINVAL: they are more than 1073741823.
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

/// Takes this many permits together if that needs no waiting. EBUSY: there are fewer, or
/// other threads wait. EINVAL: they are more than 1073741823.
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

/// Takes this many permits together, or gives up at a moment. EINVAL: they are more than
/// 1073741823.
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

/// Puts this many permits in. It never waits. Any thread may do so. EOVERFLOW: there would be more
/// than 1073741823, and nothing has changed.
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
    unsafe { of(semaphore) }.available()
}
