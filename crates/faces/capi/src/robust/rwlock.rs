//! `ulocks_robust_rwlock_t`.

use super::{code, refused, with, with_until};
use crate::call;
use crate::region::{me, named, ulocks_member_t, ulocks_region_t};
use core::ffi::{c_char, c_int};
use core::mem::forget;
use libc::timespec;
use ulocks_shm::RwLock;

type Lock = RwLock<()>;

const _: () = call::holds::<ulocks_robust_rwlock_t, Lock>();

/// A reader-writer lock in a region that a holder's death does not keep locked. A reader that dies
/// leaves no trace. If a writer dies, the next holder is told: EOWNERDEAD.
///
/// | functions | for |
/// |---|---|
/// | ulocks_robust_rwlock_read_ | readers; they and the writers get the lock in order of arrival |
/// | ulocks_robust_rwlock_urgent_ | readers that pass all writers that wait |
/// | ulocks_robust_rwlock_write_ | writers |
///
/// Urgent readers that always overlap shut out a writer for ever.
///
/// The errors of its functions: EOWNERDEAD: locked, but a writer has died, so the data may be half
/// changed; a writer repairs it, and says that it is consistent; ENOTRECOVERABLE: not locked,
/// because a writer unlocked without that; EDEADLK: the thread reads or writes already; EINVAL: the
/// lock is not in the member's region, or the member is that of another process; EBADMSG: the
/// memory was overwritten.
#[repr(C)]
pub struct ulocks_robust_rwlock_t {
    _words: [u64; 36],
}

/// # Safety
/// The pointer is valid.
unsafe fn of<'a>(lock: *const ulocks_robust_rwlock_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock.
    unsafe { &*lock.cast() }
}

/// Finds the reader-writer lock of a name in a region, or makes it, unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_robust_rwlock(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    lock: *mut *mut ulocks_robust_rwlock_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { named::<Lock, _>(region, member, name, lock) }
}

/// The function `$name`, which locks by `$method` and returns `$otherwise` if that gives up.
macro_rules! acquisition {
    ($(#[$about:meta])* $name:ident, $method:ident, $otherwise:expr) => {
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            lock: *mut ulocks_robust_rwlock_t,
            member: *const ulocks_member_t,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { with(of(lock), me(member), |lock, me| code(lock.$method(me), $otherwise)) }
        }
    };
}

/// The function `$name`, which locks by `$method`, or gives up at a moment.
macro_rules! acquisition_until {
    ($(#[$about:meta])* $name:ident, $method:ident) => {
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            lock: *mut ulocks_robust_rwlock_t,
            member: *const ulocks_member_t,
            monotonic_deadline: *const timespec,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe {
                with_until(of(lock), me(member), monotonic_deadline, |lock, me, deadline| {
                    code(lock.$method(me, deadline), libc::ETIMEDOUT)
                })
            }
        }
    };
}

acquisition! {
    /// Locks for reading, behind the writers that wait.
    ulocks_robust_rwlock_read_lock, read, libc::ETIMEDOUT
}

acquisition! {
    /// Locks for reading if that needs no waiting. EBUSY: a writer has the lock or waits.
    ulocks_robust_rwlock_read_trylock, try_read, libc::EBUSY
}

acquisition_until! {
    /// Locks for reading, or gives up at a moment.
    ulocks_robust_rwlock_read_lock_until, read_until
}

acquisition! {
    /// Locks for an urgent reader, before all writers that wait.
    ulocks_robust_rwlock_urgent_lock, read_urgent, libc::ETIMEDOUT
}

acquisition! {
    /// Locks for an urgent reader if that needs no waiting. EBUSY: a writer has the lock.
    ulocks_robust_rwlock_urgent_trylock, try_read_urgent, libc::EBUSY
}

acquisition_until! {
    /// Locks for an urgent reader, or gives up at a moment.
    ulocks_robust_rwlock_urgent_lock_until, read_urgent_until
}

/// Unlocks for a reader of either class. EPERM: the thread does not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_read_unlock(
    lock: *mut ulocks_robust_rwlock_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise. The guard of the acquisition was forgotten.
    unsafe {
        with(of(lock), me(member), |lock, me| {
            lock.read_guard_unchecked(me).map_or(libc::EPERM, |guard| {
                drop(guard);
                0
            })
        })
    }
}

acquisition! {
    /// Locks for writing, and waits as long as that takes.
    ulocks_robust_rwlock_write_lock, write, libc::ETIMEDOUT
}

acquisition! {
    /// Locks for writing if that needs no waiting. EBUSY: a thread has the lock or waits.
    ulocks_robust_rwlock_write_trylock, try_write, libc::EBUSY
}

acquisition_until! {
    /// Locks for writing, or gives up at a moment.
    ulocks_robust_rwlock_write_lock_until, write_until
}

/// Unlocks for a writer. If a writer had died, and the data was not said to be consistent, the lock
/// is not recoverable from here on. EPERM: the thread does not write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_write_unlock(
    lock: *mut ulocks_robust_rwlock_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise. The guard of the acquisition was forgotten.
    unsafe {
        with(of(lock), me(member), |lock, me| {
            lock.write_guard_unchecked(me).map_or(libc::EPERM, |guard| {
                drop(guard);
                0
            })
        })
    }
}

/// Turns the lock of a writer into that of a reader, and lets other readers in. No writer comes in
/// between. If the data is not consistent, it stays so. Unlock with
/// ulocks_robust_rwlock_read_unlock. EPERM: the thread does not write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_downgrade(
    lock: *mut ulocks_robust_rwlock_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise. The guard of the acquisition was forgotten.
    unsafe {
        with(of(lock), me(member), |lock, me| {
            lock.write_guard_unchecked(me).map_or(libc::EPERM, |guard| {
                forget(guard.downgrade());
                0
            })
        })
    }
}

/// Says that the data is whole again, after EOWNERDEAD. EINVAL also: no writer had died.
/// EPERM: the thread does not write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_consistent(
    lock: *mut ulocks_robust_rwlock_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise. The guard of the acquisition was forgotten, and is again.
    unsafe {
        with(of(lock), me(member), |lock, me| {
            lock.write_guard_unchecked(me).map_or(libc::EPERM, |mut guard| {
                let code = if guard.is_dirty() { 0 } else { libc::EINVAL };
                guard.mark_consistent();
                forget(guard);
                code
            })
        })
    }
}

/// Locks for writing although the lock is not recoverable. Returns EOWNERDEAD: the data is dirty
/// until it is said to be consistent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_reset(
    lock: *mut ulocks_robust_rwlock_t,
    member: *const ulocks_member_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        with(of(lock), me(member), |lock, me| match lock.reset(me) {
            Ok(guard) => {
                forget(guard);
                libc::EOWNERDEAD
            }
            Err(why) => refused(why, libc::ETIMEDOUT),
        })
    }
}

/// Whether a thread has the lock at this moment, living or dead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_is_locked(lock: *const ulocks_robust_rwlock_t) -> bool {
    // SAFETY: the caller's promise.
    unsafe { of(lock) }.is_locked()
}
