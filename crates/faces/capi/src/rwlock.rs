//! The reader-writer locks, with three classes of readers.
//!
//! The functions of readers have a class in their names. With readers counted in one word, the
//! token of a reader is the same for every lock.

use crate::call;
use core::ffi::c_int;
use core::marker::PhantomData;
use core::panic::Location;
use libc::timespec;
use ulocks_core::Policy;
use ulocks_core::errno::Guard;
use ulocks_core::raw::{RawRwLock as _, RawRwLockUpgrade as _};
use ulocks_core::signal::Soft;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{
    BULK, Central, NESTED, PhaseFair, RawPsRwLock, Sifted, ThreadClass, URGENT, Unchecked,
};

/// The lock of a policy.
pub(crate) type Lock<P> =
    RawPsRwLock<Sifted<{ BULK | URGENT | NESTED }, P, PhaseFair, Central, Soft, Unchecked>>;

/// A way to hold a lock.
pub(crate) trait Way {
    fn lock<P: Policy>(lock: &Lock<P>);
    fn try_lock<P: Policy>(lock: &Lock<P>) -> bool;
    fn lock_until<P: Policy>(lock: &Lock<P>, deadline: Deadline) -> bool;
    /// # Safety
    /// The calling thread holds the lock in this way.
    unsafe fn unlock<P: Policy>(lock: &Lock<P>);
}

/// A reader of a class.
pub(crate) struct Reader<C>(PhantomData<C>);

impl<C: ThreadClass> Way for Reader<C> {
    fn lock<P: Policy>(lock: &Lock<P>) {
        lock.read_in::<C>(Location::caller());
    }

    fn try_lock<P: Policy>(lock: &Lock<P>) -> bool {
        lock.try_read_in::<C>(Location::caller()).is_some()
    }

    fn lock_until<P: Policy>(lock: &Lock<P>, deadline: Deadline) -> bool {
        lock.read_in_until::<C>(deadline, Location::caller()).is_some()
    }

    unsafe fn unlock<P: Policy>(lock: &Lock<P>) {
        // SAFETY: the caller's promise; the token is that of every reader of this class.
        unsafe { lock.unlock_read(const { Lock::<P>::token::<C>() }) };
    }
}

/// A writer.
pub(crate) struct Writer;

impl Way for Writer {
    fn lock<P: Policy>(lock: &Lock<P>) {
        lock.write();
    }

    fn try_lock<P: Policy>(lock: &Lock<P>) -> bool {
        lock.try_write().is_some()
    }

    fn lock_until<P: Policy>(lock: &Lock<P>, deadline: Deadline) -> bool {
        lock.write_until(deadline).is_some()
    }

    unsafe fn unlock<P: Policy>(lock: &Lock<P>) {
        // SAFETY: the caller's promise.
        unsafe { lock.unlock_write(()) };
    }
}

/// A reader that may become a writer.
pub(crate) struct Upgradable;

impl Way for Upgradable {
    fn lock<P: Policy>(lock: &Lock<P>) {
        lock.upgradable();
    }

    fn try_lock<P: Policy>(lock: &Lock<P>) -> bool {
        lock.try_upgradable().is_some()
    }

    fn lock_until<P: Policy>(lock: &Lock<P>, deadline: Deadline) -> bool {
        lock.upgradable_until(deadline).is_some()
    }

    unsafe fn unlock<P: Policy>(lock: &Lock<P>) {
        // SAFETY: the caller's promise.
        unsafe { lock.unlock_upgradable(()) };
    }
}

pub(crate) fn lock<W: Way, P: Policy>(lock: &Lock<P>) -> c_int {
    let _errno = Guard::new();
    W::lock(lock);
    0
}

pub(crate) fn trylock<W: Way, P: Policy>(lock: &Lock<P>) -> c_int {
    let _errno = Guard::new();
    call::code(W::try_lock(lock), libc::EBUSY)
}

/// # Safety
/// `until` is null or points to a `timespec`.
pub(crate) unsafe fn lock_until<W: Way, P: Policy>(lock: &Lock<P>, until: *const timespec) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call::timed(until, |deadline| W::lock_until(lock, deadline)) }
}

/// # Safety
/// The calling thread holds the lock in this way.
pub(crate) unsafe fn unlock<W: Way, P: Policy>(lock: &Lock<P>) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { W::unlock(lock) };
    0
}

/// The functions of a way to hold a lock, in a module `$way`. `$who` completes "Locks for".
macro_rules! way {
    ($name:ident, $lock:ident, $way:ident, $who:literal, $type:ty) => {
        mod $way {
            use super::{of, $lock};
            use crate::rwlock;
            use core::ffi::c_int;
            use libc::timespec;

            #[doc = concat!(" Locks for ", $who, ", and waits as long as that takes. Returns 0.")]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_lock"))]
            pub unsafe extern "C" fn lock(lock: *mut $lock) -> c_int {
                // SAFETY: the caller's promise.
                rwlock::lock::<$type, _>(unsafe { of(lock) })
            }

            #[doc = concat!(" Locks for ", $who, " if that needs no waiting. Returns 0, or EBUSY.")]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_trylock"))]
            pub unsafe extern "C" fn trylock(lock: *mut $lock) -> c_int {
                // SAFETY: the caller's promise.
                rwlock::trylock::<$type, _>(unsafe { of(lock) })
            }

            #[doc = concat!(" Locks for ", $who, ", or gives up at a moment of CLOCK_MONOTONIC.")]
            ///
            /// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is
            /// null, or its tv_nsec is not from 0 to 999999999.
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_lock_until"))]
            pub unsafe extern "C" fn lock_until(
                lock: *mut $lock,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { rwlock::lock_until::<$type, _>(of(lock), monotonic_deadline) }
            }

            #[doc = concat!(
                        " Unlocks what ", stringify!($name), "_", stringify!($way), "_lock and the like ",
                        "have locked. Returns 0."
                    )]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($way), "_unlock"))]
            pub unsafe extern "C" fn unlock(lock: *mut $lock) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { rwlock::unlock::<$type, _>(of(lock)) }
            }
        }
    };
}

/// The module `$name` with the type and the functions of a reader-writer lock of the scope
/// `$scope`.
macro_rules! rwlock {
    ($(#[$about:meta])* $name:ident: $lock:ident, $scope:ty) => {
        mod $name {
            use crate::{call, rwlock};
            use core::ffi::c_int;
            use libc::timespec;
            use ulocks_core::errno::Guard;
            use ulocks_core::raw::{RawRwLock as _, RawRwLockDowngrade as _, RawRwLockUpgrade as _};

            type Lock = rwlock::Lock<$scope>;

            const _: () = call::holds::<$lock, Lock>();

            $(#[$about])*
            #[repr(C)]
            pub struct $lock {
                _words: [u64; 2],
            }

            /// # Safety
            /// `lock` points to one that lives as long as the caller uses what this returns.
            unsafe fn of<'a>(lock: *const $lock) -> &'a Lock {
                // SAFETY: the caller's promise. The type has the size and the alignment of the
                // lock, and it is changed by the functions of this crate only.
                unsafe { &*lock.cast() }
            }

            way! { $name, $lock, read, "reading", rwlock::Reader<ulocks_psrwlock::Bulk> }
            way! { $name, $lock, urgent, "an urgent reader", rwlock::Reader<ulocks_psrwlock::Urgent> }
            way! { $name, $lock, nested, "a nested reader", rwlock::Reader<ulocks_psrwlock::Nested> }
            way! { $name, $lock, write, "writing", rwlock::Writer }

            /// Turns the lock of a writer into that of an ordinary reader. No writer comes in
            /// between.
            ///
            #[doc = concat!(" Unlock it with ", stringify!($name), "_read_unlock. Returns 0.")]
            #[unsafe(export_name = concat!(stringify!($name), "_downgrade"))]
            pub unsafe extern "C" fn downgrade(lock: *mut $lock) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                _ = unsafe { of(lock).downgrade(()) };
                0
            }

            way! { $name, $lock, upgradable, "an upgradable reader", rwlock::Upgradable }

            #[doc = concat!(
                " Turns an upgradable lock into that of a writer, and waits until the other ",
                "readers have left. Unlock it with ", stringify!($name), "_write_unlock. Returns ",
                "0."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_upgrade"))]
            pub unsafe extern "C" fn upgrade(lock: *mut $lock) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { of(lock).upgrade(()) };
                0
            }

            #[doc = concat!(
                " As ", stringify!($name), "_upgrade, if that needs no waiting. Returns 0, or ",
                "EBUSY: there are other readers, and the lock is upgradable as before."
            )]
            #[unsafe(export_name = concat!(stringify!($name), "_tryupgrade"))]
            pub unsafe extern "C" fn tryupgrade(lock: *mut $lock) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                call::code(unsafe { of(lock).try_upgrade(()) }.is_ok(), libc::EBUSY)
            }

            #[doc = concat!(
                " As ", stringify!($name), "_upgrade, but gives up at a moment of CLOCK_MONOTONIC."
            )]
            ///
            /// Returns 0; ETIMEDOUT: the moment has passed; EINVAL: the pointer to the moment is
            /// null, or its tv_nsec is not from 0 to 999999999. After an error the lock is
            /// upgradable as before.
            #[unsafe(export_name = concat!(stringify!($name), "_upgrade_until"))]
            pub unsafe extern "C" fn upgrade_until(
                lock: *mut $lock,
                monotonic_deadline: *const timespec,
            ) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { call::timed(monotonic_deadline, |deadline| of(lock).upgrade_until((), deadline).is_ok()) }
            }

            /// Turns an upgradable lock into that of an ordinary reader.
            ///
            #[doc = concat!(" Unlock it with ", stringify!($name), "_read_unlock. Returns 0.")]
            #[unsafe(export_name = concat!(stringify!($name), "_upgradable_downgrade"))]
            pub unsafe extern "C" fn upgradable_downgrade(lock: *mut $lock) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                _ = unsafe { of(lock).downgrade_upgradable(()) };
                0
            }

            /// Turns the lock of a writer into an upgradable one. No writer comes in between.
            /// Returns 0.
            #[unsafe(export_name = concat!(stringify!($name), "_downgrade_to_upgradable"))]
            pub unsafe extern "C" fn downgrade_to_upgradable(lock: *mut $lock) -> c_int {
                let _errno = Guard::new();
                // SAFETY: the caller's promise.
                unsafe { of(lock).downgrade_to_upgradable(()) };
                0
            }

            /// Whether a thread holds the lock at this moment, in any way.
            #[unsafe(export_name = concat!(stringify!($name), "_is_locked"))]
            pub unsafe extern "C" fn is_locked(lock: *const $lock) -> bool {
                // SAFETY: the caller's promise. The lock is only read.
                unsafe { of(lock) }.is_locked()
            }

            /// Whether a writer holds the lock at this moment.
            #[unsafe(export_name = concat!(stringify!($name), "_is_write_locked"))]
            pub unsafe extern "C" fn is_write_locked(lock: *const $lock) -> bool {
                // SAFETY: the caller's promise. The lock is only read.
                unsafe { of(lock) }.is_write_locked()
            }
        }
    };
}
