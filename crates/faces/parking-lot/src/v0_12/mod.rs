//! The names of parking_lot 0.12, over lock_api 0.4.

mod condvar;
mod locks;

pub use super::locks::{RawFairMutex, RawMutex, RawThreadId};
pub use crate::once::*;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lock_api_04 as lock_api;

/// The raw lock of [`RwLock`].
pub type RawRwLock = super::locks::RawRwLock;

#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub use lock_api::{ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};

#[cfg(not(feature = "send_guard"))]
type Marker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type Marker = lock_api::GuardSend;
/// A mutex around a `T`.
///
/// It is `ulocks::Mutex` with guards that are `Send` if the feature `send_guard` says so.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Access to the data of a [`Mutex`]; its drop unlocks.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A [`MutexGuard`] narrowed to a part of the data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that serves threads in the order in which they come.
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;
/// Access to the data of a [`FairMutex`]; its drop unlocks.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;
/// A [`FairMutexGuard`] narrowed to a part of the data.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A mutex that its holder may lock again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A [`ReentrantMutexGuard`] narrowed to a part of the data.
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Many readers or one writer. Readers and writers take turns.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Access to read the data of a [`RwLock`]; its drop unlocks.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Access to write the data of a [`RwLock`]; its drop unlocks.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Access to read the data of a [`RwLock`] that can become access to write; its drop unlocks.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// A [`RwLockReadGuard`] narrowed to a part of the data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A [`RwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A mutex, in a constant expression.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(RawMutex::new(), value)
}

/// A fair mutex, in a constant expression.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(RawFairMutex::new(), value)
}

/// A reentrant mutex, in a constant expression.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(RawMutex::new(), RawThreadId, value)
}

/// A reader-writer lock, in a constant expression.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(RawRwLock::new(), value)
}

