//! The robust mutexes.

/// The module `$name` with the type and the functions of a robust mutex: `$found`, the function
/// that finds one, is for `$what`.
macro_rules! robust_mutex {
    (
        $(#[$about:meta])*
        $name:ident: $mutex:ident { $field:ident: $words:ty }, $lock:ty,
        $found:literal, $what:literal
    ) => {
        mod $name {
            use crate::call;
            use crate::region::{me, named, ulocks_member_t, ulocks_region_t};
            use crate::robust::{
                self, code, cond_of, refused, ulocks_robust_cond_t, wait, with, with_until,
            };
            use core::ffi::{c_char, c_int};
            use core::mem::forget;
            use libc::timespec;

            type Lock = $lock;

            const _: () = call::holds::<$mutex, Lock>();

            $(#[$about])*
            #[repr(C)]
            pub struct $mutex {
                $field: $words,
            }

            /// # Safety
            /// The pointer is valid.
            unsafe fn of<'a>(mutex: *const $mutex) -> &'a Lock {
                // SAFETY: the caller's promise. The type has the size and the alignment of the
                // lock.
                unsafe { &*mutex.cast() }
            }

            #[doc = concat!(" Finds the ", $what, " of a name in a region, or makes it, unlocked.")]
            #[unsafe(export_name = $found)]
            pub unsafe extern "C" fn found(
                region: *const ulocks_region_t,
                member: *const ulocks_member_t,
                name: *const c_char,
                mutex: *mut *mut $mutex,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { named::<Lock, _>(region, member, name, mutex) }
            }

            /// Locks the mutex, and waits as long as that takes. The errors: see
            /// ulocks_robust_mutex_t.
            #[unsafe(export_name = concat!(stringify!($name), "_lock"))]
            pub unsafe extern "C" fn lock(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { with(of(mutex), me(member), |mutex, me| code(mutex.lock(me), libc::ETIMEDOUT)) }
            }

            /// Locks the mutex if that needs no waiting. EBUSY: a living thread holds it.
            #[unsafe(export_name = concat!(stringify!($name), "_trylock"))]
            pub unsafe extern "C" fn trylock(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { with(of(mutex), me(member), |mutex, me| code(mutex.try_lock(me), libc::EBUSY)) }
            }

            /// Locks the mutex, or gives up at a moment.
            #[unsafe(export_name = concat!(stringify!($name), "_lock_until"))]
            pub unsafe extern "C" fn lock_until(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe {
                    with_until(of(mutex), me(member), monotonic_deadline, |mutex, me, deadline| {
                        code(mutex.lock_until(me, deadline), libc::ETIMEDOUT)
                    })
                }
            }

            /// Unlocks the mutex, which the calling thread must hold. If the last holder died, and
            /// the data was not said to be consistent, the mutex is not recoverable from here on.
            #[unsafe(export_name = concat!(stringify!($name), "_unlock"))]
            pub unsafe extern "C" fn unlock(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { robust::unlock(of(mutex), me(member)) }
            }

            /// Says that the data is whole again, after EOWNERDEAD. EINVAL also: no holder had
            /// died.
            #[unsafe(export_name = concat!(stringify!($name), "_consistent"))]
            pub unsafe extern "C" fn consistent(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { robust::consistent(of(mutex), me(member)) }
            }

            /// Locks the mutex although it is not recoverable. Returns EOWNERDEAD: the data is
            /// dirty until it is said to be consistent.
            #[unsafe(export_name = concat!(stringify!($name), "_reset"))]
            pub unsafe extern "C" fn reset(
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                with(unsafe { of(mutex) }, unsafe { me(member) }, |mutex, me| match mutex.reset(me) {
                    Ok(guard) => {
                        forget(guard);
                        libc::EOWNERDEAD
                    }
                    Err(why) => refused(why, libc::ETIMEDOUT),
                })
            }

            /// Unlocks the mutex, waits until notified, and locks the mutex again. A wait may end
            /// without a notification, so look at the condition again. The mutex is locked after 0
            /// and EOWNERDEAD; after EINVAL it was not unlocked.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait"))]
            pub unsafe extern "C" fn cond_wait(
                cond: *mut ulocks_robust_cond_t,
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { wait(cond_of(cond), of(mutex), me(member), None) }
            }

            /// The same, until a moment. The mutex is locked after ETIMEDOUT, too.
            #[unsafe(export_name = concat!(stringify!($name), "_cond_wait_until"))]
            pub unsafe extern "C" fn cond_wait_until(
                cond: *mut ulocks_robust_cond_t,
                mutex: *mut $mutex,
                member: *const ulocks_member_t,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe {
                    match call::deadline(monotonic_deadline) {
                        Ok(deadline) => wait(cond_of(cond), of(mutex), me(member), Some(deadline)),
                        Err(error) => error,
                    }
                }
            }
        }
    };
}
