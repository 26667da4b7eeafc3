//! The names of parking_lot 0.13, over lock_api 0.5.

use super::locks::{Condvar as Inner, RawFairMutex, RawMutex, RawRwLock, RawThreadId};
use crate::rwlock::Patience;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::raw::{RawMutex as _, RawMutexFair as _};
use ulocks_core::time::Deadline;

crate::traits::names!();

/// The raw lock of [`RecursiveRwLock`].
pub type RawRwLockRecursive = RawRwLock<true>;
/// A [`RwLock`] that a thread may read again while it reads. Readers may starve writers.
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLockRecursive, T>;
/// Access to read the data of a [`RecursiveRwLock`]; its drop unlocks.
pub type RecursiveRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLockRecursive, T>;
/// Access to write the data of a [`RecursiveRwLock`]; its drop unlocks.
pub type RecursiveRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLockRecursive, T>;
/// Access to read that can become access to write; its drop unlocks.
pub type RecursiveRwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockReadGuard`] narrowed to a part of the data.
pub type MappedRecursiveRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRecursiveRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLockRecursive, T>;

/// Waits until something is true under a [`Mutex`]. Notifications count exactly; a wait ends only
/// by one of them, or by its deadline.
///
/// # Panics
/// A wait with another mutex than the one that threads wait with.
pub type Condvar = lock_api::Condvar<RawCondvar>;
pub use lock_api::WaitTimeoutResult;

/// The raw condition variable of [`Condvar`].
pub struct RawCondvar(Inner);

// SAFETY: `wait` gives up the mutex and begins to wait in one step with respect to notifications,
// and returns holding it. It panics before it gives up the mutex, or not at all.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(Inner::new());

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, _: &mut Marker) {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: as above; a wait that reports a timeout has outlasted its deadline.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _: &mut Marker, timeout: &Instant) -> bool {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, Some(Deadline::at(*timeout))) }
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, _: &mut Marker, timeout: &Duration) -> bool {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, Some(Deadline::after(*timeout))) }
    }
}

macro_rules! acquire {
    ($method:ident($self:ident) $acquire:expr) => {
        #[inline]
        #[track_caller]
        fn $method(&$self) -> Marker {
            $acquire;
            Marker::new()
        }
    };
}
macro_rules! attempt {
    ($method:ident($self:ident $(, $limit:ident: $type:ty)?) $attempt:expr) => {
        #[inline]
        #[track_caller]
        fn $method(&$self $(, $limit: $type)?) -> Option<Marker> {
            ($attempt).then(Marker::new)
        }
    };
}
macro_rules! release {
    ($method:ident($self:ident) $release:expr) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&$self, _: Marker) {
            // SAFETY: the caller holds this lock in this way.
            unsafe { $release };
        }
    };
}
macro_rules! exchange {
    ($method:ident($self:ident) $exchange:expr) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&$self, _: Marker) -> Marker {
            // SAFETY: the caller holds this lock in this way.
            unsafe { $exchange };
            Marker::new()
        }
    };
}
macro_rules! try_exchange {
    ($method:ident($self:ident $(, $limit:ident: $type:ty)?) $exchange:expr) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&$self, guard: Marker $(, $limit: $type)?) -> Result<Marker, Marker> {
            // SAFETY: the caller holds this lock in this way.
            if unsafe { $exchange } { Ok(guard) } else { Err(guard) }
        }
    };
}

crate::traits::traits! {
    mutex { type Guard = Marker; }
    rwlock { type SharedGuard = Marker; type ExclusiveGuard = Marker; }
    upgrade { type UpgradableGuard = Marker; }
}
