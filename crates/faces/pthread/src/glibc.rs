//! glibc's own functions, for what is passed on to them.
//!
//! All are looked up when the library is loaded. Another library's constructor may need one before
//! that. It looks up that one and no other: a lookup that fails allocates its error message, and
//! the constructor may be that of malloc. Where glibc has two versions of a condition variable,
//! ours is the newer.

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr;
use libc::{
    clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t, pthread_rwlock_t,
    pthread_rwlockattr_t, timespec,
};
use ulocks_core::sync::AtomicPtr;
use ulocks_core::sync::Ordering::{Acquire, Release};

/// Declares each function, a place for its address, and the list for [`resolve`].
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// glibc's function of that name.
            ///
            /// # Safety
            /// As that function.
            pub unsafe fn $name($($argument: $type),*) -> c_int {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                let address = address(&ADDRESSES.$name, concat!(stringify!($name), "\0"));
                // SAFETY: the address is that of the function of this name, whose type this is.
                let function = unsafe { mem::transmute::<*mut c_void, Function>(address) };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )*

        struct Addresses { $($name: AtomicPtr<c_void>),* }

        static ADDRESSES: Addresses = Addresses { $($name: AtomicPtr::new(ptr::null_mut())),* };

        /// Looks all functions up.
        #[cold]
        pub fn resolve() {
            $(look_up(&ADDRESSES.$name, concat!(stringify!($name), "\0"));)*
        }
    };
}

functions! {
    pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t);
    pthread_mutex_destroy(mutex: *mut pthread_mutex_t);
    pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec);
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, deadline: *const timespec);
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
    pthread_cond_init(condvar: *mut pthread_cond_t, attributes: *const pthread_condattr_t);
    pthread_cond_destroy(condvar: *mut pthread_cond_t);
    pthread_cond_wait(condvar: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    pthread_cond_timedwait(condvar: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, deadline: *const timespec);
    pthread_cond_clockwait(condvar: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, deadline: *const timespec);
    pthread_cond_signal(condvar: *mut pthread_cond_t);
    pthread_cond_broadcast(condvar: *mut pthread_cond_t);
    pthread_rwlock_init(lock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t);
    pthread_rwlock_destroy(lock: *mut pthread_rwlock_t);
    pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t);
    pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t);
    pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, deadline: *const timespec);
    pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, deadline: *const timespec);
    pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t);
    pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t);
    pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, deadline: *const timespec);
    pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, deadline: *const timespec);
    pthread_rwlock_unlock(lock: *mut pthread_rwlock_t);
}

fn address(place: &AtomicPtr<c_void>, name: &str) -> *mut c_void {
    // Acquire: pairs with the release in `look_up`; the function's code was mapped before.
    let known = place.load(Acquire);
    if !known.is_null() {
        return known;
    }
    look_up(place, name);
    place.load(Acquire)
}

/// The version of the newer condition variables. The architectures that came later have no other.
const NEWER: Option<&CStr> = if cfg!(target_arch = "x86_64") { Some(c"GLIBC_2.3.2") } else { None };

#[cold]
fn look_up(place: &AtomicPtr<c_void>, name: &str) {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { return };
    let has_versions = name.to_bytes().starts_with(b"pthread_cond_") && name != c"pthread_cond_clockwait";
    let version = NEWER.filter(|_| has_versions);
    // SAFETY: the names are C strings, and outlive the call.
    let found = unsafe {
        match version {
            Some(version) => libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()),
            None => libc::dlsym(libc::RTLD_NEXT, name.as_ptr()),
        }
    };
    let found = if found.is_null() { unsupported as extern "C" fn() -> c_int as *mut c_void } else { found };
    place.store(found, Release);
}

/// In place of a function that this glibc does not have: those with a clock came with 2.30.
extern "C" fn unsupported() -> c_int {
    libc::ENOSYS
}
