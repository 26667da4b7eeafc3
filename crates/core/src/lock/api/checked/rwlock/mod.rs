//! `RwLock`, as in lock_api.

mod upgrade;

use super::access::{Exclusive, Shared, Upgradable, Watched};
#[cfg(feature = "arc_lock")]
use super::guard::{ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
use super::guard::{Guard, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use super::{Raw, Token};
use crate::lock::traits::{RawRwLock, RawRwLockFair, RawRwLockUpgrade};
use crate::sys::time::Deadline;
use core::cell::UnsafeCell;
use core::fmt;
use core::time::Duration;
#[cfg(feature = "arc_lock")]
use std::sync::Arc;
use std::time::Instant;

/// Data behind a reader-writer lock.
pub struct RwLock<L, T: ?Sized> {
    lock: Watched<L>,
    data: UnsafeCell<T>,
}

// SAFETY: the data is reached by readers, which is a `Sync` use of `T`, or by the one writer, which
// is a `Send` of `T` from holder to holder.
unsafe impl<L: RawRwLock + Sync, T: ?Sized + Send + Sync> Sync for RwLock<L, T> {}

impl<L: RawRwLock, T> RwLock<L, T> {
    /// An unlocked lock.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::from_raw(Raw::new(L::init()), value)
    }

    /// The data, out of the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<L, T> RwLock<L, T> {
    /// A lock around an existing raw lock.
    #[track_caller]
    pub fn from_raw(raw: Raw<L>, value: T) -> Self {
        Self { lock: Watched::new(raw), data: UnsafeCell::new(value) }
    }

    /// The raw lock and the data, out of the lock.
    pub fn into_inner_with_raw(self) -> (Raw<L>, T) {
        (self.lock.into_raw(), self.data.into_inner())
    }
}

impl<L, T: ?Sized> RwLock<L, T> {
    pub(super) fn parts(&self) -> &Watched<L> {
        &self.lock
    }

    /// The address of the data. The model does not see accesses through it.
    pub fn data_ptr(&self) -> *mut T {
        self.data.get()
    }
}

/// The acquisitions of one kind of access: at once, if possible, and timed, as a borrow or as a
/// share of the lock.
macro_rules! acquisitions {
    ($access:ident, $guard:ident, $arc_guard:ident, $token:ident, $what:literal,
     $make:ident, $lock:ident, $try_lock:ident, $try_for:ident, $try_until:ident,
     $make_arc:ident, $lock_arc:ident, $try_lock_arc:ident, $try_arc_for:ident, $try_arc_until:ident) => {
        /// A guard from the token of an acquisition made elsewhere, whose access to the data was
        /// never closed.
        ///
        /// # Safety
        /// The caller holds the lock by `guard`, and no other guard stands for that acquisition.
        pub unsafe fn $make(&self, guard: Token<L::$token>) -> $guard<'_, L, T> {
            Guard::new(self, guard)
        }

        #[doc = concat!("Acquires the lock for ", $what, ", waiting as long as it takes.")]
        #[track_caller]
        pub fn $lock(&self) -> $guard<'_, L, T> {
            Guard::new(self, self.lock.acquire::<$access>())
        }

        #[doc = concat!("Acquires the lock for ", $what, " if that needs no waiting.")]
        #[track_caller]
        pub fn $try_lock(&self) -> Option<$guard<'_, L, T>> {
            Some(Guard::new(self, self.lock.try_acquire::<$access>()?))
        }

        #[doc = concat!("Acquires the lock for ", $what, ", or gives up after `timeout`.")]
        #[track_caller]
        pub fn $try_for(&self, timeout: Duration) -> Option<$guard<'_, L, T>> {
            Some(Guard::new(self, self.lock.acquire_until::<$access>(|| Deadline::after(timeout))?))
        }

        #[doc = concat!("Acquires the lock for ", $what, ", or gives up at `timeout`.")]
        #[track_caller]
        pub fn $try_until(&self, timeout: Instant) -> Option<$guard<'_, L, T>> {
            Some(Guard::new(self, self.lock.acquire_until::<$access>(|| Deadline::at(timeout))?))
        }

        /// A guard from the token of an acquisition made elsewhere, whose access to the data was
        /// never closed.
        ///
        /// # Safety
        /// The caller holds the lock by `guard`, and no other guard stands for that acquisition.
        #[cfg(feature = "arc_lock")]
        pub unsafe fn $make_arc(self: &Arc<Self>, guard: Token<L::$token>) -> $arc_guard<L, T> {
            Guard::new(Arc::clone(self), guard)
        }

        #[doc = concat!("Acquires the lock for ", $what, ", waiting as long as it takes; the guard owns a share of it.")]
        #[cfg(feature = "arc_lock")]
        #[track_caller]
        pub fn $lock_arc(self: &Arc<Self>) -> $arc_guard<L, T> {
            Guard::new(Arc::clone(self), self.lock.acquire::<$access>())
        }

        #[doc = concat!("Acquires the lock for ", $what, " if that needs no waiting; the guard owns a share of it.")]
        #[cfg(feature = "arc_lock")]
        #[track_caller]
        pub fn $try_lock_arc(self: &Arc<Self>) -> Option<$arc_guard<L, T>> {
            Some(Guard::new(Arc::clone(self), self.lock.try_acquire::<$access>()?))
        }

        #[doc = concat!("Acquires the lock for ", $what, ", or gives up after `timeout`; the guard owns a share of it.")]
        #[cfg(feature = "arc_lock")]
        #[track_caller]
        pub fn $try_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<$arc_guard<L, T>> {
            let token = self.lock.acquire_until::<$access>(|| Deadline::after(timeout))?;
            Some(Guard::new(Arc::clone(self), token))
        }

        #[doc = concat!("Acquires the lock for ", $what, ", or gives up at `timeout`; the guard owns a share of it.")]
        #[cfg(feature = "arc_lock")]
        #[track_caller]
        pub fn $try_arc_until(self: &Arc<Self>, timeout: Instant) -> Option<$arc_guard<L, T>> {
            let token = self.lock.acquire_until::<$access>(|| Deadline::at(timeout))?;
            Some(Guard::new(Arc::clone(self), token))
        }
    };
}

impl<L: RawRwLock, T: ?Sized> RwLock<L, T> {
    acquisitions!(
        Shared,
        RwLockReadGuard,
        ArcRwLockReadGuard,
        ReadToken,
        "reading",
        make_read_guard_unchecked,
        read,
        try_read,
        try_read_for,
        try_read_until,
        make_arc_read_guard_unchecked,
        read_arc,
        try_read_arc,
        try_read_arc_for,
        try_read_arc_until
    );
    acquisitions!(
        Exclusive,
        RwLockWriteGuard,
        ArcRwLockWriteGuard,
        WriteToken,
        "writing",
        make_write_guard_unchecked,
        write,
        try_write,
        try_write_for,
        try_write_until,
        make_arc_write_guard_unchecked,
        write_arc,
        try_write_arc,
        try_write_arc_for,
        try_write_arc_until
    );

    /// The data; the borrow stands for the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether a thread holds the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.lock.raw().inner().is_locked()
    }

    /// Whether a writer holds the lock at this moment.
    pub fn is_locked_exclusive(&self) -> bool {
        self.lock.raw().inner().is_write_locked()
    }

    /// Releases the lock of a reader without a guard.
    ///
    /// # Safety
    /// The caller holds the lock by `guard`, no guard that will release it lives, and no reference
    /// to the data is used after the call.
    #[track_caller]
    pub unsafe fn force_unlock_read(&self, guard: Token<L::ReadToken>) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release::<Shared>(guard) };
    }

    /// Releases the lock of a writer without a guard.
    ///
    /// # Safety
    /// As [`RwLock::force_unlock_read`].
    #[track_caller]
    pub unsafe fn force_unlock_write(&self, guard: Token<L::WriteToken>) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release::<Exclusive>(guard) };
    }

    /// As [`RwLock::force_unlock_read`], to the longest waiter.
    ///
    /// # Safety
    /// As [`RwLock::force_unlock_read`].
    #[track_caller]
    pub unsafe fn force_unlock_read_fair(&self, guard: Token<L::ReadToken>)
    where
        L: RawRwLockFair,
    {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release_fair::<Shared>(guard) };
    }

    /// As [`RwLock::force_unlock_write`], to the longest waiter.
    ///
    /// # Safety
    /// As [`RwLock::force_unlock_read`].
    #[track_caller]
    pub unsafe fn force_unlock_write_fair(&self, guard: Token<L::WriteToken>)
    where
        L: RawRwLockFair,
    {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release_fair::<Exclusive>(guard) };
    }

    /// The raw lock.
    ///
    /// # Safety
    /// What is done to it keeps the promises of the guards that live.
    pub unsafe fn raw(&self) -> &Raw<L> {
        self.lock.raw()
    }
}

impl<L: RawRwLockUpgrade, T: ?Sized> RwLock<L, T> {
    acquisitions!(
        Upgradable,
        RwLockUpgradableReadGuard,
        ArcRwLockUpgradableReadGuard,
        UpgradableToken,
        "reading and perhaps writing later",
        make_upgradable_guard_unchecked,
        upgradable_read,
        try_upgradable_read,
        try_upgradable_read_for,
        try_upgradable_read_until,
        make_upgradable_arc_guard_unchecked,
        upgradable_read_arc,
        try_upgradable_read_arc,
        try_upgradable_read_arc_for,
        try_upgradable_read_arc_until
    );
}

/// Acquires `rwlock` for reading in a way that the traits do not know: as a reader of some class,
/// or one that can fail.
///
/// # Errors
/// Those of `acquire`.
///
/// # Safety
/// `acquire` returns `Ok` only with the token of an acquisition of the very lock it gets.
#[track_caller]
pub unsafe fn read_with<'a, L: RawRwLock, T: ?Sized, E>(
    rwlock: &'a RwLock<L, T>,
    acquire: impl FnOnce(&L) -> Result<L::ReadToken, E>,
) -> Result<RwLockReadGuard<'a, L, T>, E> {
    Ok(Guard::new(rwlock, rwlock.lock.acquire_with::<Shared, E>(acquire)?))
}

/// The guard of an acquisition for writing that was made elsewhere. Its access is open from here
/// on.
///
/// # Safety
/// `token` comes from an acquisition of the lock of `rwlock`, and no other guard stands for that.
#[track_caller]
pub(crate) unsafe fn write_guard<L: RawRwLock, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::WriteToken,
) -> RwLockWriteGuard<'_, L, T> {
    Guard::new(rwlock, rwlock.lock.open::<Exclusive>(token))
}

/// The guard of an upgradable acquisition that was made elsewhere. Its access is open from here on.
///
/// # Safety
/// As [`write_guard`].
#[track_caller]
pub(crate) unsafe fn upgradable_guard<L: RawRwLockUpgrade, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::UpgradableToken,
) -> RwLockUpgradableReadGuard<'_, L, T> {
    Guard::new(rwlock, rwlock.lock.open::<Upgradable>(token))
}

/// Takes an upgradable guard apart. The caller now has the access, which is closed.
#[track_caller]
pub(crate) fn forget_upgradable<'a, L: RawRwLockUpgrade, T: ?Sized>(
    guard: RwLockUpgradableReadGuard<'a, L, T>,
) -> &'a RwLock<L, T> {
    let (rwlock, _) = Guard::into_parts(guard);
    rwlock.lock.close::<Upgradable>();
    rwlock
}

impl<L: RawRwLock, T: Default> Default for RwLock<L, T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<L: RawRwLock, T> From<T> for RwLock<L, T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<L: RawRwLock, T: ?Sized + fmt::Debug> fmt::Debug for RwLock<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Some(guard) => shown.field("data", &&*guard).finish(),
            None => shown.field("data", &format_args!("<locked>")).finish(),
        }
    }
}

#[cfg(feature = "serde")]
impl<L: RawRwLock, T: ?Sized + serde::Serialize> serde::Serialize for RwLock<L, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, L: RawRwLock, T: serde::Deserialize<'de>> serde::Deserialize<'de> for RwLock<L, T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
