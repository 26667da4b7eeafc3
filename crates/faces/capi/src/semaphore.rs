//! The semaphore.

/// The module `$name` with the type and the functions of a semaphore.
macro_rules! semaphore {
    ($(#[$about:meta])* $name:ident: $semaphore:ident) => {
        mod $name {
            use crate::call;
            use core::ffi::c_int;
            use libc::timespec;
            use ulocks_core::errno::Guard;
            use ulocks_fair::RawSemaphore;

            type Lock = RawSemaphore;

            const _: () = call::holds::<$semaphore, Lock>();

            // What `ULOCKS_SEMAPHORE_INIT` of the header writes.
            const _: () = {
                // SAFETY: three words and no padding, as `holds` and the next line say.
                let words: [u64; 3] = unsafe { core::mem::transmute(Lock::new(5)) };
                assert!(words[0] == 5 && words[1] == 0 && words[2] == 0);
            };

            $(#[$about])*
            #[repr(C)]
            pub struct $semaphore {
                _words: [u64; 3],
            }

            /// # Safety
            /// `semaphore` points to one that lives as long as the caller uses what this returns.
            unsafe fn of<'a>(semaphore: *const $semaphore) -> &'a Lock {
                // SAFETY: the caller's promise. The type has the size and the alignment of the
                // lock, and it is changed by the functions of this crate only.
                unsafe { &*semaphore.cast() }
            }

            /// Makes a semaphore with this many permits of memory with any content.
            ///
            /// Returns 0, or EINVAL: more than 1073741823 permits.
            #[unsafe(export_name = concat!(stringify!($name), "_init"))]
            pub unsafe extern "C" fn init(semaphore: *mut $semaphore, permits: u32) -> c_int {
                if permits > Lock::MAX_PERMITS {
                    return libc::EINVAL;
                }
                // SAFETY: the caller's promise; the type can hold the lock.
                unsafe { semaphore.cast::<Lock>().write(Lock::new(permits)) };
                0
            }

            /// Takes this many permits together, and waits as long as that takes. Zero permits need
            /// no waiting.
            ///
            /// Returns 0, or EINVAL: more than 1073741823 permits.
            #[unsafe(export_name = concat!(stringify!($name), "_acquire"))]
            pub unsafe extern "C" fn acquire(semaphore: *mut $semaphore, count: u32) -> c_int {
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
            /// Returns 0; EBUSY: there are fewer permits, or other threads wait; EINVAL: more than
            /// 1073741823 permits.
            #[unsafe(export_name = concat!(stringify!($name), "_tryacquire"))]
            pub unsafe extern "C" fn tryacquire(
                semaphore: *mut $semaphore,
                count: u32,
            ) -> c_int {
                let _errno = Guard::new();
                if count > Lock::MAX_PERMITS {
                    return libc::EINVAL;
                }
                // SAFETY: the caller's promise.
                call::code(unsafe { of(semaphore) }.try_acquire(count), libc::EBUSY)
            }

            /// Takes this many permits together, or gives up at a moment of CLOCK_MONOTONIC. It
            /// tries at least once.
            ///
            /// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: more than 1073741823 permits,
            /// or the pointer to the moment is null, or its tv_nsec is not from 0 to 999999999.
            #[unsafe(export_name = concat!(stringify!($name), "_acquire_until"))]
            pub unsafe extern "C" fn acquire_until(
                semaphore: *mut $semaphore,
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
            /// Returns 0, or EOVERFLOW: there would be more than 1073741823 permits; nothing has
            /// changed.
            #[unsafe(export_name = concat!(stringify!($name), "_release"))]
            pub unsafe extern "C" fn release(semaphore: *mut $semaphore, count: u32) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                call::code(unsafe { of(semaphore) }.release(count).is_ok(), libc::EOVERFLOW)
            }

            /// How many permits are free at this moment.
            #[unsafe(export_name = concat!(stringify!($name), "_available"))]
            pub unsafe extern "C" fn available(semaphore: *const $semaphore) -> u32 {
                // SAFETY: the caller's promise. The semaphore is only read.
                unsafe { of(semaphore) }.available()
            }
        }
    };
}
