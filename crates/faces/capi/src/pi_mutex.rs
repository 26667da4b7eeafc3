//! The mutexes with priority inheritance, and their condition variables.

use core::ffi::c_int;
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::PiError;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, tid};
use ulocks_pi::{RawPiCondvar, RawPiMutex, Taken};

/// The number of an error.
pub(crate) fn number(error: PiError) -> c_int {
    match error {
        PiError::TimedOut => libc::ETIMEDOUT,
        PiError::Deadlock => libc::EDEADLK,
        PiError::OwnerGone => libc::ENOTRECOVERABLE,
        PiError::NotPermitted => libc::EPERM,
        PiError::OutOfMemory => libc::ENOMEM,
        PiError::Unsupported => libc::ENOSYS,
        _ => libc::EINVAL,
    }
}

pub(crate) fn acquired(result: Result<Taken, PiError>) -> c_int {
    match result {
        Ok(Taken::Sound) => 0,
        Ok(Taken::OwnerDied) => libc::EOWNERDEAD,
        Err(error) => number(error),
    }
}

/// Whether the calling thread holds the mutex.
pub(crate) fn is_mine<P: Policy>(mutex: &RawPiMutex<P>) -> bool {
    mutex.state().owner() == tid::current()
}

pub(crate) fn wait<P: Policy>(
    cond: &RawPiCondvar<P>,
    mutex: &RawPiMutex<P>,
    deadline: Option<Deadline>,
) -> c_int {
    if !is_mine(mutex) {
        return libc::EPERM;
    }
    // SAFETY: this thread holds it.
    match unsafe { cond.wait(mutex, deadline) } {
        Ok((Taken::Sound, Wakeup::TimedOut)) => libc::ETIMEDOUT,
        Ok((taken, _)) => acquired(Ok(taken)),
        Err(error) => number(error),
    }
}

/// As `mutex!`, for a mutex of the scope `$scope`.
macro_rules! pi_mutex {
    ($(#[$about:meta])* $name:ident: $mutex:ident, $cond:ident, $scope:ty, $place:literal) => {
        mod $name {
            use crate::call;
            use crate::pi_mutex::{acquired, is_mine, number, wait};
            use core::ffi::c_int;
            use libc::timespec;
            use ulocks_core::errno::Guard;
            use ulocks_core::raw::RawMutex as _;
            use ulocks_pi::{RawPiCondvar, RawPiMutex};

            type Lock = RawPiMutex<$scope>;
            type Condvar = RawPiCondvar<$scope>;

            const _: () = call::holds::<$mutex, Lock>();
            const _: () = call::holds::<$cond, Condvar>();

            $(#[$about])*
            #[repr(C)]
            pub struct $mutex {
                _words: [u32; 1],
            }

            #[doc = concat!(
                " A condition variable for one mutex of the type `", stringify!($mutex), "`. It ",
                "notifies the thread of the highest priority first."
            )]
            ///
            #[doc = concat!(
                " `ULOCKS_COND_INIT`, or all bytes zero, is one without waiters. It needs no ",
                "destruction. Its memory may be freed when no thread is inside of one of its ",
                "functions.", $place
            )]
            #[repr(C)]
            pub struct $cond {
                _words: [u32; 2],
            }

            /// # Safety
            /// `mutex` points to one that lives as long as the caller uses what this returns.
            unsafe fn of<'a>(mutex: *const $mutex) -> &'a Lock {
                // SAFETY: the caller's promise. The type has the size and the alignment of the
                // lock, and it is changed by the functions of this crate only.
                unsafe { &*mutex.cast() }
            }

            /// # Safety
            /// `cond` points to one that lives as long as the caller uses what this returns.
            unsafe fn cond_of<'a>(cond: *const $cond) -> &'a Condvar {
                // SAFETY: as in `of`.
                unsafe { &*cond.cast() }
            }

            /// Locks the mutex, and waits as long as that takes.
            ///
            /// Returns 0; EOWNERDEAD: the mutex is locked, but the thread that held it has ended
            /// without unlocking; EDEADLK: the calling thread holds it already, or a thread that
            /// waits for the calling thread does; ENOTRECOVERABLE: the thread that holds it has
            /// ended, and no thread waited then; EPERM or EINVAL: the memory has been overwritten;
            /// ENOMEM or ENOSYS: the kernel has no memory, or no priority inheritance.
            #[unsafe(export_name = concat!(stringify!($name), "_lock"))]
            pub unsafe extern "C" fn lock(mutex: *mut $mutex) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                acquired(unsafe { of(mutex) }.acquire(None))
            }

            /// Locks the mutex if that needs no waiting.
            ///
            #[doc = concat!(
                " Returns 0, or an error as ", stringify!($name), "_lock. EBUSY: a thread holds ",
                "the mutex; this one, too."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_trylock"))]
            pub unsafe extern "C" fn trylock(mutex: *mut $mutex) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                match unsafe { of(mutex) }.try_acquire() {
                    Ok(None) => libc::EBUSY,
                    Ok(Some(taken)) => acquired(Ok(taken)),
                    Err(error) => number(error),
                }
            }

            /// Locks the mutex, or gives up at a moment of CLOCK_MONOTONIC. It tries at least once.
            ///
            #[doc = concat!(
                " Returns 0, or an error as ", stringify!($name), "_lock. ETIMEDOUT: the moment ",
                "has passed. EINVAL: also if the pointer to the moment is null, or its tv_nsec is ",
                "not from 0 to 999999999."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_lock_until"))]
            pub unsafe extern "C" fn lock_until(
                mutex: *mut $mutex,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe {
                    match call::deadline(monotonic_deadline) {
                        Ok(deadline) => acquired(of(mutex).acquire(Some(deadline))),
                        Err(error) => error,
                    }
                }
            }

            /// Unlocks the mutex.
            ///
            /// Returns 0, or EPERM: the calling thread does not hold the mutex.
            #[unsafe(export_name = concat!(stringify!($name), "_unlock"))]
            pub unsafe extern "C" fn unlock(mutex: *mut $mutex) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                let mutex = unsafe { of(mutex) };
                if !is_mine(mutex) {
                    return libc::EPERM;
                }
                // SAFETY: this thread holds it.
                unsafe { mutex.unlock(()) };
                0
            }

            /// Whether a thread holds the mutex at this moment.
            #[unsafe(export_name = concat!(stringify!($name), "_is_locked"))]
            pub unsafe extern "C" fn is_locked(mutex: *const $mutex) -> bool {
                // SAFETY: the caller's promise. The lock is only read.
                unsafe { of(mutex) }.is_locked()
            }

            /// Unlocks the mutex, waits until notified, and locks the mutex again.
            ///
            /// No notification is missed that comes after the unlocking. A wait may end without
            /// one, so look at the condition again. It is no cancellation point. All waits use the
            /// same mutex.
            ///
            #[doc = concat!(
                " Returns 0; EPERM: the calling thread does not hold the mutex; or an error as ",
                stringify!($name), "_lock. The mutex is locked only after 0 and EOWNERDEAD."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait"))]
            pub unsafe extern "C" fn cond_wait(
                cond: *mut $cond,
                mutex: *mut $mutex,
            ) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { wait(cond_of(cond), of(mutex), None) }
            }

            #[doc = concat!(
                " As ", stringify!($name), "_cond_wait, but gives up at a moment of ",
                "CLOCK_MONOTONIC."
            )]
            ///
            /// ETIMEDOUT: the moment has passed, no notification came, and the mutex is locked
            /// again. EINVAL: also if the pointer to the moment is null, or its tv_nsec is not from
            /// 0 to 999999999; then the mutex was not unlocked.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait_until"))]
            pub unsafe extern "C" fn cond_wait_until(
                cond: *mut $cond,
                mutex: *mut $mutex,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe {
                    match call::deadline(monotonic_deadline) {
                        Ok(deadline) => wait(cond_of(cond), of(mutex), Some(deadline)),
                        Err(error) => error,
                    }
                }
            }

            /// Notifies one thread that waits, with or without the mutex locked. The mutex is that
            /// of the waits.
            ///
            #[doc = concat!(
                " Returns 0, or an error of the kernel as ", stringify!($name), "_lock."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_cond_signal"))]
            pub unsafe extern "C" fn cond_signal(
                cond: *mut $cond,
                mutex: *mut $mutex,
            ) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { cond_of(cond).notify_one(of(mutex)) }.map_or_else(number, |_| 0)
            }

            /// Notifies all threads that wait, with or without the mutex locked. The mutex is that
            /// of the waits.
            ///
            #[doc = concat!(
                " Returns 0, or an error of the kernel as ", stringify!($name), "_lock."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_cond_broadcast"))]
            pub unsafe extern "C" fn cond_broadcast(
                cond: *mut $cond,
                mutex: *mut $mutex,
            ) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { cond_of(cond).notify_all(of(mutex)) }.map_or_else(number, |_| 0)
            }
        }
    };
}
