//! The reader-writer lock, with three classes of readers.
//!
//! The functions of readers have a class in their names. With readers counted in one word, the
//! token of a reader is always the same.

use crate::call;
use core::ffi::c_int;
use core::marker::PhantomData;
use core::panic::Location;
use libc::timespec;
use ulocks_core::Private;
use ulocks_core::errno::Guard;
use ulocks_core::raw::{RawRwLock as _, RawRwLockDowngrade as _, RawRwLockUpgrade as _};
use ulocks_core::signal::Soft;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{
    BULK, Central, NESTED, PhaseFair, RawPsRwLock, Sifted, ThreadClass, URGENT, Unchecked,
};

type Lock = RawPsRwLock<Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>>;

/// A way to hold a lock.
trait Way {
    fn lock(lock: &Lock);
    fn try_lock(lock: &Lock) -> bool;
    fn lock_until(lock: &Lock, deadline: Deadline) -> bool;
    /// # Safety
    /// The calling thread holds the lock in this way.
    unsafe fn unlock(lock: &Lock);
}

/// A reader of a class.
struct Reader<C>(PhantomData<C>);

impl<C: ThreadClass> Way for Reader<C> {
    fn lock(lock: &Lock) {
        lock.read_in::<C>(Location::caller());
    }

    fn try_lock(lock: &Lock) -> bool {
        lock.try_read_in::<C>(Location::caller()).is_some()
    }

    fn lock_until(lock: &Lock, deadline: Deadline) -> bool {
        lock.read_in_until::<C>(deadline, Location::caller()).is_some()
    }

    unsafe fn unlock(lock: &Lock) {
        // SAFETY: the caller's promise; the token is that of every reader of this class.
        unsafe { lock.unlock_read(const { Lock::token::<C>() }) };
    }
}

/// A writer.
struct Writer;

impl Way for Writer {
    fn lock(lock: &Lock) {
        lock.write();
    }

    fn try_lock(lock: &Lock) -> bool {
        lock.try_write().is_some()
    }

    fn lock_until(lock: &Lock, deadline: Deadline) -> bool {
        lock.write_until(deadline).is_some()
    }

    unsafe fn unlock(lock: &Lock) {
        // SAFETY: the caller's promise.
        unsafe { lock.unlock_write(()) };
    }
}

/// A reader that may become a writer.
struct Upgradable;

impl Way for Upgradable {
    fn lock(lock: &Lock) {
        lock.upgradable();
    }

    fn try_lock(lock: &Lock) -> bool {
        lock.try_upgradable().is_some()
    }

    fn lock_until(lock: &Lock, deadline: Deadline) -> bool {
        lock.upgradable_until(deadline).is_some()
    }

    unsafe fn unlock(lock: &Lock) {
        // SAFETY: the caller's promise.
        unsafe { lock.unlock_upgradable(()) };
    }
}

fn lock<W: Way>(lock: &Lock) -> c_int {
    let _errno = Guard::new();
    W::lock(lock);
    0
}

fn trylock<W: Way>(lock: &Lock) -> c_int {
    let _errno = Guard::new();
    call::code(W::try_lock(lock), libc::EBUSY)
}

/// # Safety
/// `until` is null or points to a `timespec`.
unsafe fn lock_until<W: Way>(lock: &Lock, until: *const timespec) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(until, |deadline| W::lock_until(lock, deadline)) }
}

/// # Safety
/// The calling thread holds the lock in this way.
unsafe fn unlock<W: Way>(lock: &Lock) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { W::unlock(lock) };
    0
}

/// The functions of a way to hold a lock, in a module `$way`. `$who` completes "Locks for".
macro_rules! way {
    ($way:ident, $who:literal, $type:ty) => {
        mod $way {
            use super::*;

            #[doc = concat!(" Locks for ", $who, ", and waits as long as that takes.")]
            #[unsafe(export_name = concat!("ulocks_rwlock_", stringify!($way), "_lock"))]
            pub unsafe extern "C" fn lock(lock: *mut ulocks_rwlock_t) -> c_int {
                // SAFETY: the caller's promise.
                super::lock::<$type>(unsafe { of(lock) })
            }

            #[doc = concat!(" Locks for ", $who, " if that needs no waiting, or EBUSY.")]
            #[unsafe(export_name = concat!("ulocks_rwlock_", stringify!($way), "_trylock"))]
            pub unsafe extern "C" fn trylock(lock: *mut ulocks_rwlock_t) -> c_int {
                // SAFETY: the caller's promise.
                super::trylock::<$type>(unsafe { of(lock) })
            }

            #[doc = concat!(" Locks for ", $who, ", or gives up at a moment.")]
            #[unsafe(export_name = concat!("ulocks_rwlock_", stringify!($way), "_lock_until"))]
            pub unsafe extern "C" fn lock_until(
                lock: *mut ulocks_rwlock_t,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { super::lock_until::<$type>(of(lock), monotonic_deadline) }
            }

            #[doc = concat!(" Unlocks what was locked for ", $who, ".")]
            #[unsafe(export_name = concat!("ulocks_rwlock_", stringify!($way), "_unlock"))]
            pub unsafe extern "C" fn unlock(lock: *mut ulocks_rwlock_t) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { super::unlock::<$type>(of(lock)) }
            }
        }
    };
}

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
/// It belongs to one process. A thread that asks for it again waits for ever, unless it reads
/// already and asks for a later class of readers. More than 131072 readers at once, or 6000 that
/// wait, end the process.
#[repr(C)]
pub struct ulocks_rwlock_t {
    _words: [u64; 2],
}

/// # Safety
/// `lock` points to one that lives as long as the caller uses what this returns.
unsafe fn of<'a>(lock: *const ulocks_rwlock_t) -> &'a Lock {
    // SAFETY: the caller's promise. The type has the size and the alignment of the
    // lock, and it is changed by the functions of this crate only.
    unsafe { &*lock.cast() }
}

way! { read, "reading", Reader<ulocks_psrwlock::Bulk> }
way! { urgent, "an urgent reader", Reader<ulocks_psrwlock::Urgent> }
way! { nested, "a nested reader", Reader<ulocks_psrwlock::Nested> }
way! { write, "writing", Writer }

/// Turns the lock of a writer into that of an ordinary reader. No writer comes in between.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_downgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    _ = unsafe { of(lock).downgrade(()) };
    0
}

way! { upgradable, "an upgradable reader", Upgradable }

/// Turns an upgradable lock into that of a writer, and waits until the other readers have left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(lock).upgrade(()) };
    0
}

/// The same if that needs no waiting. EBUSY: there are other readers, and the lock is upgradable as
/// before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_tryupgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    call::code(unsafe { of(lock).try_upgrade(()) }.is_ok(), libc::EBUSY)
}

/// As ulocks_rwlock_upgrade, or gives up at a moment. After an error the lock is upgradable as
/// before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgrade_until(
    lock: *mut ulocks_rwlock_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(monotonic_deadline, |deadline| of(lock).upgrade_until((), deadline).is_ok()) }
}

/// Turns an upgradable lock into that of an ordinary reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_upgradable_downgrade(lock: *mut ulocks_rwlock_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    _ = unsafe { of(lock).downgrade_upgradable(()) };
    0
}

/// Turns the lock of a writer into an upgradable one. No writer comes in between.
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
    unsafe { of(lock) }.is_locked()
}

/// Whether a writer holds the lock at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_rwlock_is_write_locked(lock: *const ulocks_rwlock_t) -> bool {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(lock) }.is_write_locked()
}
