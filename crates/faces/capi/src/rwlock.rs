//! `ulocks_rwlock_t`: RawPsRwLock of this family, with three classes of readers.
//!
//! The functions of readers have a class in their names. With readers counted in one word, the
//! token of a reader is the same for every lock.

use crate::call;
use core::ffi::c_int;
use core::panic::Location;
use libc::timespec;
use std::sync::OnceLock;
use ulocks_core::Private;
use ulocks_core::errno::Guard;
use ulocks_core::raw::{RawRwLock as _, RawRwLockDowngrade as _, RawRwLockUpgrade as _};
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    BULK, Bulk, Central, NESTED, Nested, PhaseFair, RawPsRwLock, ReadToken, Sifted, ThreadClass, URGENT,
    Unchecked, Urgent,
};

const CLASSES: u8 = BULK | URGENT | NESTED;

type Lock = RawPsRwLock<Sifted<CLASSES, Private, PhaseFair, Central, Soft, Unchecked>>;

const _: () = call::holds::<ulocks_rwlock_t, Lock>();

/// A reader-writer lock where readers and writers take turns, with three classes of readers.
///
/// | functions | for |
/// |---|---|
/// | ulocks_rwlock_read_ | ordinary readers, which may take long |
/// | ulocks_rwlock_urgent_ | readers with short sections: they wait for no ordinary reader, and not for a writer that waits for one |
/// | ulocks_rwlock_nested_ | code that may run while its thread reads the lock already, by another class |
/// | ulocks_rwlock_write_ | writers |
/// | ulocks_rwlock_upgradable_ | a reader that may become a writer; one at a time, beside other readers |
///
/// `ULOCKS_RWLOCK_INIT`, or all bytes zero, is an unlocked lock. It needs no destruction: the
/// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
/// that asks for it again waits for ever, unless it reads already and asks for a later class of
/// readers. More than 131072 readers at once, or 6000 that wait, end the process.
#[repr(C)]
pub struct ulocks_rwlock_t {
    _words: [u64; 2],
}

/// # Safety
/// `lock` points to a `ulocks_rwlock_t` that lives as long as the caller uses what this returns.
unsafe fn of<'a>(lock: *mut ulocks_rwlock_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the lock, and it is
    // changed by the functions of this file only.
    unsafe { &*lock.cast() }
}

fn token<C: ThreadClass>(cell: &OnceLock<ReadToken>) -> ReadToken {
    *cell.get_or_init(|| Lock::new().try_read_in::<C>(Location::caller()).expect("a new lock is free"))
}

fn read<C: ThreadClass>(lock: &Lock) -> c_int {
    let _errno = Guard::new();
    lock.read_in::<C>(Location::caller());
    0
}

fn try_read<C: ThreadClass>(lock: &Lock) -> c_int {
    let _errno = Guard::new();
    call::code(lock.try_read_in::<C>(Location::caller()).is_some(), libc::EBUSY)
}

/// # Safety
/// `until` is null or points to a `timespec`.
unsafe fn read_until<C: ThreadClass>(lock: &Lock, until: *const timespec) -> c_int {
    let acquire = |deadline| lock.read_in_until::<C>(deadline, Location::caller()).is_some();
    // SAFETY: the caller's promise.
    unsafe { call::timed(until, acquire) }
}

/// Locks for reading, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_read_lock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    read::<Bulk>(unsafe { of(lock) })
}

/// Locks for reading if that needs no waiting. Returns 0, or EBUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_read_trylock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    try_read::<Bulk>(unsafe { of(lock) })
}

/// Locks for reading, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_read_lock_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { read_until::<Bulk>(of(lock), monotonic_deadline) }
}

/// Unlocks what ulocks_rwlock_read_lock and the like have locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_read_unlock(lock: *mut ulocks_rwlock_t) -> c_int {
    static TOKEN: OnceLock<ReadToken> = OnceLock::new();
    let _errno = Guard::new();
    // SAFETY: the caller's promise; the token is that of every reader of this class.
    unsafe { of(lock).unlock_read(token::<Bulk>(&TOKEN)) };
    0
}

/// Locks for an urgent reader, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_urgent_lock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    read::<Urgent>(unsafe { of(lock) })
}

/// Locks for an urgent reader if that needs no waiting. Returns 0, or EBUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_urgent_trylock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    try_read::<Urgent>(unsafe { of(lock) })
}

/// Locks for an urgent reader, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_urgent_lock_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { read_until::<Urgent>(of(lock), monotonic_deadline) }
}

/// Unlocks what ulocks_rwlock_urgent_lock and the like have locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_urgent_unlock(lock: *mut ulocks_rwlock_t) -> c_int {
    static TOKEN: OnceLock<ReadToken> = OnceLock::new();
    let _errno = Guard::new();
    // SAFETY: the caller's promise; the token is that of every reader of this class.
    unsafe { of(lock).unlock_read(token::<Urgent>(&TOKEN)) };
    0
}

/// Locks for a nested reader, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_nested_lock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    read::<Nested>(unsafe { of(lock) })
}

/// Locks for a nested reader if that needs no waiting. Returns 0, or EBUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_nested_trylock(lock: *mut ulocks_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    try_read::<Nested>(unsafe { of(lock) })
}

/// Locks for a nested reader, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_nested_lock_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { read_until::<Nested>(of(lock), monotonic_deadline) }
}

/// Unlocks what ulocks_rwlock_nested_lock and the like have locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_nested_unlock(lock: *mut ulocks_rwlock_t) -> c_int {
    static TOKEN: OnceLock<ReadToken> = OnceLock::new();
    let _errno = Guard::new();
    // SAFETY: the caller's promise; the token is that of every reader of this class.
    unsafe { of(lock).unlock_read(token::<Nested>(&TOKEN)) };
    0
}

/// Locks for writing, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_write_lock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock) }.write();
    0
}

/// Locks for writing if that needs no waiting. Returns 0, or EBUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_write_trylock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    call::code(unsafe { of(lock) }.try_write().is_some(), libc::EBUSY)
}

/// Locks for writing, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_write_lock_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, |deadline| of(lock).write_until(deadline).is_some()) }
}

/// Unlocks what ulocks_rwlock_write_lock and the like have locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_write_unlock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock).unlock_write(()) };
    0
}

/// Turns the lock of a writer into that of an ordinary reader. No writer comes in between.
///
/// Unlock it with ulocks_rwlock_read_unlock. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_downgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    _ = unsafe { of(lock).downgrade(()) };
    0
}

/// Locks for an upgradable reader, and waits as long as that takes. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_lock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock) }.upgradable();
    0
}

/// Locks for an upgradable reader if that needs no waiting. Returns 0, or EBUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_trylock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    call::code(unsafe { of(lock) }.try_upgradable().is_some(), libc::EBUSY)
}

/// Locks for an upgradable reader, or gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_lock_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, |deadline| of(lock).upgradable_until(deadline).is_some()) }
}

/// Unlocks what ulocks_rwlock_upgradable_lock and the like have locked. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_unlock(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock).unlock_upgradable(()) };
    0
}

/// Turns an upgradable lock into that of a writer, and waits until the other readers have left.
/// Unlock it with ulocks_rwlock_write_unlock. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock).upgrade(()) };
    0
}

/// As ulocks_rwlock_upgrade, if that needs no waiting. Returns 0, or EBUSY: there are other
/// readers, and the lock is upgradable as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_tryupgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    call::code(unsafe { of(lock).try_upgrade(()) }.is_ok(), libc::EBUSY)
}

/// As ulocks_rwlock_upgrade, but gives up at a moment of CLOCK_MONOTONIC.
///
/// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is null, or its
/// tv_nsec is not from 0 to 999999999. After an error the lock is upgradable as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgrade_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, |deadline| of(lock).upgrade_until((), deadline).is_ok()) }
}

/// Turns an upgradable lock into that of an ordinary reader.
///
/// Unlock it with ulocks_rwlock_read_unlock. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_downgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    _ = unsafe { of(lock).downgrade_upgradable(()) };
    0
}

/// Turns the lock of a writer into an upgradable one. No writer comes in between. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_downgrade_to_upgradable(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock).downgrade_to_upgradable(()) };
    0
}

/// Whether a thread holds the lock at this moment, in any way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_is_locked(lock: *const ulocks_rwlock_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(lock.cast_mut()) }.is_locked()
}

/// Whether a writer holds the lock at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_is_write_locked(lock: *const ulocks_rwlock_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(lock.cast_mut()) }.is_write_locked()
}
