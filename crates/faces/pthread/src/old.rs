//! Names that glibc had for some functions before 2.34, and still has for old programs.
//!
//! A program that is linked with such a name may use both for one lock. The programs ask for the
//! version `GLIBC_2.2.5`, or their architecture's. The loader takes a symbol without a version for
//! it, and those of this library have none.

use core::ffi::c_int;
use libc::{pthread_mutex_t, pthread_mutexattr_t, pthread_rwlock_t, pthread_rwlockattr_t};

macro_rules! old_names {
    ($($module:ident: $old:ident = $new:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function without the underscores.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $old($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { crate::$module::$new($($argument),*) }
        }
    )*};
}

old_names! {
    mutex: __pthread_mutex_init = pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t);
    mutex: __pthread_mutex_destroy = pthread_mutex_destroy(mutex: *mut pthread_mutex_t);
    mutex: __pthread_mutex_lock = pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    mutex: __pthread_mutex_trylock = pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    mutex: __pthread_mutex_unlock = pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
    rwlock: __pthread_rwlock_init = pthread_rwlock_init(lock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t);
    rwlock: __pthread_rwlock_destroy = pthread_rwlock_destroy(lock: *mut pthread_rwlock_t);
    rwlock: __pthread_rwlock_rdlock = pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t);
    rwlock: __pthread_rwlock_tryrdlock = pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t);
    rwlock: __pthread_rwlock_wrlock = pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t);
    rwlock: __pthread_rwlock_trywrlock = pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t);
    rwlock: __pthread_rwlock_unlock = pthread_rwlock_unlock(lock: *mut pthread_rwlock_t);
}
