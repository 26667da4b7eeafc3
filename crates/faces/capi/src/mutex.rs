//! The default, barging and fair mutexes, and their condition variables: one macro has the
//! functions.

use crate::call;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::timespec;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::errno::Guard;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;

/// A mutex, and how its holder releases it. Without a token it is as large as the mutex.
#[repr(C)]
pub(crate) struct Kept<L: RawMutex> {
    pub(crate) raw: L,
    /// Written by each holder before it is read. Only holders touch it.
    token: UnsafeCell<MaybeUninit<L::Token>>,
}

impl<L: RawMutex> Kept<L> {
    /// Keeps the token of an acquisition until the release.
    ///
    /// # Safety
    /// The calling thread holds the mutex, by this token.
    unsafe fn keep(&self, token: L::Token) {
        // SAFETY: only the holder touches the cell, and that is this thread.
        unsafe { (*self.token.get()).write(token) };
    }

    /// The token of the acquisition, for one release.
    ///
    /// # Safety
    /// The calling thread holds the mutex.
    unsafe fn token(&self) -> L::Token {
        // SAFETY: only the holder touches the cell, and that is this thread. It has kept its token
        // there when it acquired, and takes it once.
        unsafe { (*self.token.get()).assume_init_read() }
    }

    fn acquired(&self, token: Option<L::Token>) -> bool {
        // SAFETY: acquired by the caller, by this token.
        token.map(|token| unsafe { self.keep(token) }).is_some()
    }

    /// The first attempt makes no call that could change `errno`.
    #[inline(always)]
    pub(crate) fn lock(&self) -> c_int {
        let token = self.raw.try_lock().unwrap_or_else(|| {
            let _errno = Guard::new();
            self.raw.lock()
        });
        // SAFETY: acquired above.
        unsafe { self.keep(token) };
        0
    }

    pub(crate) fn trylock(&self) -> c_int {
        call::code(self.acquired(self.raw.try_lock()), libc::EBUSY)
    }

    /// # Safety
    /// `until` is null or points to a `timespec`.
    pub(crate) unsafe fn lock_until(&self, until: *const timespec) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { call::timed(until, |deadline| self.acquired(self.raw.lock_until(deadline))) }
    }

    /// # Safety
    /// The calling thread holds the mutex.
    pub(crate) unsafe fn unlock(&self) -> c_int {
        let _errno = Guard::new();
        // SAFETY: the caller's promise. The release is the last touch.
        unsafe { self.raw.unlock(self.token()) };
        0
    }

    /// # Safety
    /// The calling thread holds the mutex.
    pub(crate) unsafe fn wait(&self, cond: &RawCondvar<L>, deadline: Option<Deadline>) -> c_int {
        let _errno = Guard::new();
        // SAFETY: this thread holds the mutex, by this token, and again after the wait.
        unsafe {
            let (token, wakeup) = cond.wait(&self.raw, self.token(), deadline);
            self.keep(token);
            call::code(wakeup == Wakeup::Notified, libc::ETIMEDOUT)
        }
    }
}

/// The module `$name` with the type `$mutex` of a mutex `$lock` and the type `$cond` of its
/// condition variable, and with their functions, whose names begin with `$name`.
macro_rules! mutex {
    (
        $(#[$about:meta])*
        $name:ident: $mutex:ident { $field:ident: $words:ty }, $cond:ident,
        $lock:ty
    ) => {
        mod $name {
            use crate::{call, mutex::Kept};
            use core::ffi::c_int;
            use libc::timespec;
            use ulocks_core::condvar::RawCondvar;
            use ulocks_core::errno::Guard;
            use ulocks_core::raw::RawMutex as _;

            type Lock = Kept<$lock>;
            type Condvar = RawCondvar<$lock>;

            const _: () = call::holds::<$mutex, Lock>();
            const _: () = call::holds::<$cond, Condvar>();

            $(#[$about])*
            #[repr(C)]
            pub struct $mutex {
                $field: $words,
            }

            #[doc = concat!(" A condition variable for mutexes of the type ", stringify!($mutex), ".")]
            #[repr(C)]
            pub struct $cond {
                _words: [u64; 2],
            }

            /// # Safety
            /// `mutex` points to one that lives as long as the caller uses what this returns.
            pub(super) unsafe fn of<'a>(mutex: *const $mutex) -> &'a Lock {
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
            #[unsafe(export_name = concat!(stringify!($name), "_lock"))]
            pub unsafe extern "C" fn lock(mutex: *mut $mutex) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { of(mutex) }.lock()
            }

            /// Locks the mutex if that needs no waiting. EBUSY: a thread holds it, or has a right
            /// to it.
            #[unsafe(export_name = concat!(stringify!($name), "_trylock"))]
            pub unsafe extern "C" fn trylock(mutex: *mut $mutex) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { of(mutex) }.trylock()
            }

            /// Locks the mutex, or gives up at a moment. It tries at least once.
            #[unsafe(export_name = concat!(stringify!($name), "_lock_until"))]
            pub unsafe extern "C" fn lock_until(
                mutex: *mut $mutex,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { of(mutex).lock_until(monotonic_deadline) }
            }

            /// Unlocks the mutex. The calling thread must hold it.
            #[unsafe(export_name = concat!(stringify!($name), "_unlock"))]
            pub unsafe extern "C" fn unlock(mutex: *mut $mutex) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { of(mutex).unlock() }
            }

            /// Whether a thread holds the mutex at this moment.
            #[unsafe(export_name = concat!(stringify!($name), "_is_locked"))]
            pub unsafe extern "C" fn is_locked(mutex: *const $mutex) -> bool {
                // SAFETY: the caller's promise. The lock is only read.
                unsafe { of(mutex) }.raw.is_locked()
            }

            /// Unlocks the mutex, which the calling thread must hold, waits until notified, and
            /// locks the mutex again. No notification is missed that comes after the unlocking. A
            /// wait may end without one, so look at the condition again.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait"))]
            pub unsafe extern "C" fn cond_wait(cond: *mut $cond, mutex: *mut $mutex) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { of(mutex).wait(cond_of(cond), None) }
            }

            /// The same, until a moment. The mutex is locked again in every case; after EINVAL it
            /// was not unlocked.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait_until"))]
            pub unsafe extern "C" fn cond_wait_until(
                cond: *mut $cond,
                mutex: *mut $mutex,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe {
                    match call::deadline(monotonic_deadline) {
                        Ok(deadline) => of(mutex).wait(cond_of(cond), Some(deadline)),
                        Err(error) => error,
                    }
                }
            }

            /// Notifies one thread that waits, with or without the mutex locked.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_signal"))]
            pub unsafe extern "C" fn cond_signal(cond: *mut $cond) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { cond_of(cond) }.notify_one();
                0
            }

            /// Notifies all threads that wait, with or without the mutex locked.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_broadcast"))]
            pub unsafe extern "C" fn cond_broadcast(cond: *mut $cond) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { cond_of(cond) }.notify_all();
                0
            }
        }
    };
}
