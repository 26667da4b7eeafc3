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

/// Ends an access, if the thread has it.
fn ended<G>(guard: Option<G>, end: impl FnOnce(G)) -> c_int {
    guard.map_or(libc::EPERM, |guard| {
        end(guard);
        0
    })
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

/// The function `$name`, which does this with the lock, if the member may use it.
macro_rules! function {
    ($(#[$about:meta])* $name:ident, $does:expr) => {
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            lock: *mut ulocks_robust_rwlock_t,
            member: *const ulocks_member_t,
        ) -> c_int {
            // SAFETY: the caller's promise.
            let (lock, me) = unsafe { (of(lock), me(member)) };
            with(lock, me, $does)
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

function! {
    /// Locks for reading, behind the writers that wait.
    ulocks_robust_rwlock_read_lock, |lock, me| code(lock.read(me), libc::ETIMEDOUT)
}

function! {
    /// Locks for reading if that needs no waiting. EBUSY: a writer has the lock or waits.
    ulocks_robust_rwlock_read_trylock, |lock, me| code(lock.try_read(me), libc::EBUSY)
}

acquisition_until! {
    /// Locks for reading, or gives up at a moment.
    ulocks_robust_rwlock_read_lock_until, read_until
}

function! {
    /// Locks for an urgent reader, before all writers that wait.
    ulocks_robust_rwlock_urgent_lock, |lock, me| code(lock.read_urgent(me), libc::ETIMEDOUT)
}

function! {
    /// Locks for an urgent reader if that needs no waiting. EBUSY: a writer has the lock.
    ulocks_robust_rwlock_urgent_trylock, |lock, me| code(lock.try_read_urgent(me), libc::EBUSY)
}

acquisition_until! {
    /// Locks for an urgent reader, or gives up at a moment.
    ulocks_robust_rwlock_urgent_lock_until, read_urgent_until
}

function! {
    /// Unlocks for a reader of either class. EPERM: the thread does not read.
    ulocks_robust_rwlock_read_unlock, |lock, me| {
        // SAFETY: the guard of the acquisition was forgotten.
        ended(unsafe { lock.read_guard_unchecked(me) }, drop)
    }
}

function! {
    /// Locks for writing, and waits as long as that takes.
    ulocks_robust_rwlock_write_lock, |lock, me| code(lock.write(me), libc::ETIMEDOUT)
}

function! {
    /// Locks for writing if that needs no waiting. EBUSY: a thread has the lock or waits.
    ulocks_robust_rwlock_write_trylock, |lock, me| code(lock.try_write(me), libc::EBUSY)
}

acquisition_until! {
    /// Locks for writing, or gives up at a moment.
    ulocks_robust_rwlock_write_lock_until, write_until
}

function! {
    /// Unlocks for a writer. If a writer had died, and the data was not said to be consistent, the
    /// lock is not recoverable from here on. EPERM: the thread does not write.
    ulocks_robust_rwlock_write_unlock, |lock, me| {
        // SAFETY: the guard of the acquisition was forgotten.
        ended(unsafe { lock.write_guard_unchecked(me) }, drop)
    }
}

function! {
    /// Turns the lock of a writer into that of a reader, and lets other readers in. No writer comes
    /// in between. If the data is not consistent, it stays so. Unlock with
    /// ulocks_robust_rwlock_read_unlock. EPERM: the thread does not write.
    ulocks_robust_rwlock_downgrade, |lock, me| {
        // SAFETY: the guard of the acquisition was forgotten.
        ended(unsafe { lock.write_guard_unchecked(me) }, |guard| forget(guard.downgrade()))
    }
}

function! {
    /// Says that the data is whole again, after EOWNERDEAD. EINVAL also: no writer had died. EPERM:
    /// the thread does not write.
    ulocks_robust_rwlock_consistent, |lock, me| {
        // SAFETY: the guard of the acquisition was forgotten, and is again.
        unsafe { lock.write_guard_unchecked(me) }.map_or(libc::EPERM, |mut guard| {
            let code = if guard.is_dirty() { 0 } else { libc::EINVAL };
            guard.mark_consistent();
            forget(guard);
            code
        })
    }
}

function! {
    /// Locks for writing although the lock is not recoverable. Returns EOWNERDEAD: the data is
    /// dirty until it is said to be consistent.
    ulocks_robust_rwlock_reset, |lock, me| match lock.reset(me) {
        Ok(guard) => {
            forget(guard);
            libc::EOWNERDEAD
        }
        Err(why) => refused(why, libc::ETIMEDOUT),
    }
}

/// Whether a thread has the lock at this moment, living or dead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_robust_rwlock_is_locked(lock: *const ulocks_robust_rwlock_t) -> bool {
    // SAFETY: the caller's promise.
    unsafe { of(lock) }.is_locked()
}
