//! `ulocks_robust_semaphore_t`.

use super::{refused, with, with_until};
use crate::call;
use crate::region::{me, named, ulocks_member_t, ulocks_region_t};
use core::ffi::{c_char, c_int};
use libc::timespec;
use ulocks_shm::{SemError, Semaphore};

type Lock = Semaphore;

const _: () = call::holds::<ulocks_robust_semaphore_t, Lock>();

/// A counting semaphore in a region. The permits that a thread has come back when it dies.
///
/// Of the threads that wait, the one that came first and can have what it asks for is served.
#[repr(C)]
pub struct ulocks_robust_semaphore_t {
    _words: [u64; 264],
}

/// # Safety
/// The pointer is valid.
unsafe fn of<'a>(semaphore: *const ulocks_robust_semaphore_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock.
    unsafe { &*semaphore.cast() }
}

/// The number of a result; `limit` for more than 32,767 permits.
fn code(result: Result<(), SemError>, busy: c_int, limit: c_int) -> c_int {
    match result {
        Ok(()) => 0,
        Err(SemError::WouldBlock) => busy,
        Err(SemError::Limit) => limit,
        Err(SemError::Refused(why)) => refused(why, busy),
        Err(_) => libc::EBADMSG,
    }
}

/// The function `$name`, which does this with so many permits, if the member may use the semaphore.
macro_rules! function {
    ($(#[$about:meta])* $name:ident, |$semaphore:ident, $me:ident, $count:ident| $does:expr) => {
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $semaphore: *mut ulocks_robust_semaphore_t,
            member: *const ulocks_member_t,
            $count: u32,
        ) -> c_int {
            // SAFETY: the caller's promise.
            let ($semaphore, $me) = unsafe { (of($semaphore), me(member)) };
            with($semaphore, $me, |$semaphore, $me| $does)
        }
    };
}

/// Finds the semaphore of a name in a region, or makes it, without permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_robust_semaphore(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    semaphore: *mut *mut ulocks_robust_semaphore_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { named::<Lock, _>(region, member, name, semaphore) }
}

function! {
    /// Takes this many permits together, and waits as long as that takes. They come back when the
    /// thread dies.
    ///
    /// Returns 0; EINVAL: the thread would have more than 32767 permits, or the semaphore is not in
    /// the member's region, or the member is that of another process; EBADMSG: the memory was
    /// overwritten.
    ulocks_robust_semaphore_acquire,
    |semaphore, me, count| code(semaphore.take(me, count, None), libc::ETIMEDOUT, libc::EINVAL)
}

function! {
    /// Takes this many permits together if that needs no waiting. EBUSY: there are fewer permits.
    ulocks_robust_semaphore_tryacquire,
    |semaphore, me, count| code(semaphore.try_take(me, count), libc::EBUSY, libc::EINVAL)
}

/// Takes this many permits together, or gives up at a moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_semaphore_acquire_until(
    semaphore: *mut ulocks_robust_semaphore_t,
    member: *const ulocks_member_t,
    count: u32,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        with_until(of(semaphore), me(member), monotonic_deadline, |semaphore, me, deadline| {
            code(semaphore.take(me, count, Some(deadline)), libc::ETIMEDOUT, libc::EINVAL)
        })
    }
}

function! {
    /// Gives back this many of the permits that the calling thread has taken. Permits beyond 32767
    /// free ones are lost; there are so many only if some were added while others were out.
    ///
    /// Returns 0; EPERM: the thread has fewer; EINVAL: the semaphore is not in the member's region,
    /// or the member is that of another process.
    ulocks_robust_semaphore_release,
    |semaphore, me, count| call::code(semaphore.give_back(me, count), libc::EPERM)
}

function! {
    /// Adds this many permits. They stay when the thread dies.
    ///
    /// Returns 0; EOVERFLOW: there would be more than 32767 free permits, and nothing has changed;
    /// EINVAL and EBADMSG: as ulocks_robust_semaphore_acquire.
    ulocks_robust_semaphore_add,
    |semaphore, me, count| code(semaphore.add_permits(me, count), libc::ETIMEDOUT, libc::EOVERFLOW)
}

/// How many permits are free at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_semaphore_available(
    semaphore: *const ulocks_robust_semaphore_t,
) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { of(semaphore) }.available_permits()
}
