//! The names as all compilers but rustdoc read them. `pages` says what they are.

use crate::{psrwlock, unfair};

pub use psrwlock::{
    MappedPsRwLockReadGuard as MappedRwLockReadGuard, MappedPsRwLockWriteGuard as MappedRwLockWriteGuard,
    PsRwLock as RwLock, PsRwLockReadGuard as RwLockReadGuard,
    PsRwLockUpgradableReadGuard as RwLockUpgradableReadGuard, PsRwLockWriteGuard as RwLockWriteGuard,
};
pub use unfair::{
    MappedThroughputMutexGuard as MappedMutexGuard, ThroughputCondvar as Condvar, ThroughputMutex as Mutex,
    ThroughputMutexGuard as MutexGuard,
};

/// A [`MutexGuard`] that owns a share of its mutex.
#[cfg(feature = "arc_lock")]
pub type ArcMutexGuard<T> = ulocks_core::api::ArcMutexGuard<unfair::RawThroughputMutex, T>;

/// A [`RwLockReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockReadGuard<T> =
    ulocks_core::api::ArcRwLockReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockWriteGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockWriteGuard<T> =
    ulocks_core::api::ArcRwLockWriteGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockUpgradableReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockUpgradableReadGuard<T> =
    ulocks_core::api::ArcRwLockUpgradableReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;
