//! The traits of lock_api for the raw locks, and the names of parking_lot, once for the two
//! versions of lock_api. These differ in what an operation takes and returns, which a version says
//! in macros of its own:
//!
//! - `acquire!` waits for as long as it takes;
//! - `attempt!` may come back without the lock, and knows by a `bool`;
//! - `release!` gives up what the caller holds;
//! - `exchange!` makes another access of what the caller holds;
//! - `try_exchange!` does, or leaves that as it was.

use crate::rwlock::Patience;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::time::Deadline;

impl Patience {
    pub(crate) fn after(limit: Duration) -> Self {
        Self::Until(Deadline::after(limit))
    }

    pub(crate) fn at(limit: Instant) -> Self {
        Self::Until(Deadline::at(limit))
    }
}

/// The traits that both versions have, with the associated types that each one's guards need.
macro_rules! traits {
    (mutex { $($guard:item)* } rwlock { $($access:item)* } upgrade { $($upgradable:item)* }) => {
        crate::traits::traits!(mutex RawMutex, unlock, [$($guard)*]);
        crate::traits::traits!(mutex RawFairMutex, unlock_fair, [$($guard)*]);

        // SAFETY: two threads that live at the same time have different variables.
        unsafe impl lock_api::GetThreadId for RawThreadId {
            const INIT: Self = Self;

            #[inline]
            fn nonzero_thread_id(&self) -> core::num::NonZeroUsize {
                Self::current()
            }
        }

        // SAFETY: the lock below keeps this contract: readers or one writer, acquire and release
        // ordering. It keeps no address, so a guard may be forgotten and a locked lock moved or
        // dropped.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLock for RawRwLock<RECURSIVE> {
            const INIT: Self = Self::new();

            $($access)*

            acquire!(lock_shared(self) self.acquire_shared(Patience::Forever));
            attempt!(try_lock_shared(self) self.acquire_shared(Patience::Never));
            release!(unlock_shared(self) self.0.unlock_read());
            acquire!(lock_exclusive(self) self.0.write(Patience::Forever));
            attempt!(try_lock_exclusive(self) self.0.write(Patience::Never));
            release!(unlock_exclusive(self) self.0.unlock_write());

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }

            #[inline]
            fn is_locked_exclusive(&self) -> bool {
                self.0.is_write_locked()
            }
        }

        // SAFETY: as above; a fair release is a release. A writer that waits has shut out new
        // readers, so a reader's release is fair.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockFair for RawRwLock<RECURSIVE> {
            release!(unlock_shared_fair(self) self.0.unlock_read());
            release!(unlock_exclusive_fair(self) self.0.unlock_write_fair());
        }

        // SAFETY: as above; no writer comes between the two.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockDowngrade for RawRwLock<RECURSIVE> {
            exchange!(downgrade(self) self.0.downgrade());
        }

        // SAFETY: as above; an attempt gives up no earlier than its deadline.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockTimed for RawRwLock<RECURSIVE> {
            type Duration = Duration;
            type Instant = Instant;

            attempt!(try_lock_shared_for(self, limit: Duration) self.acquire_shared(Patience::after(limit)));
            attempt!(try_lock_shared_until(self, limit: Instant) self.acquire_shared(Patience::at(limit)));
            attempt!(try_lock_exclusive_for(self, limit: Duration) self.0.write(Patience::after(limit)));
            attempt!(try_lock_exclusive_until(self, limit: Instant) self.0.write(Patience::at(limit)));
        }

        // SAFETY: as above; there is one upgradable reader at most, and no writer comes between two
        // accesses.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgrade for RawRwLock<RECURSIVE> {
            $($upgradable)*

            acquire!(lock_upgradable(self) self.0.upgradable(Patience::Forever));
            attempt!(try_lock_upgradable(self) self.0.upgradable(Patience::Never));
            release!(unlock_upgradable(self) self.0.unlock_upgradable());
            exchange!(upgrade(self) self.0.upgrade(Patience::Forever));
            try_exchange!(try_upgrade(self) self.0.upgrade(Patience::Never));
        }

        // SAFETY: as above.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeFair for RawRwLock<RECURSIVE> {
            release!(unlock_upgradable_fair(self) self.0.unlock_upgradable_fair());
        }

        // SAFETY: as above.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeDowngrade for RawRwLock<RECURSIVE> {
            exchange!(downgrade_upgradable(self) self.0.downgrade_upgradable());
            exchange!(downgrade_to_upgradable(self) self.0.downgrade_to_upgradable());
        }

        // SAFETY: as above; an attempt gives up no earlier than its deadline.
        unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeTimed for RawRwLock<RECURSIVE> {
            attempt!(try_lock_upgradable_for(self, limit: Duration) self.0.upgradable(Patience::after(limit)));
            attempt!(try_lock_upgradable_until(self, limit: Instant) self.0.upgradable(Patience::at(limit)));
            try_exchange!(try_upgrade_for(self, limit: Duration) self.0.upgrade(Patience::after(limit)));
            try_exchange!(try_upgrade_until(self, limit: Instant) self.0.upgrade(Patience::at(limit)));
        }
    };
    (mutex $Mutex:ty, $unlock_fair:ident, [$($guard:item)*]) => {
        // SAFETY: the lock below keeps this contract: exclusion, acquire and release ordering; its
        // token is nothing, so a guard may be forgotten and a locked mutex moved or dropped.
        unsafe impl lock_api::RawMutex for $Mutex {
            const INIT: Self = Self::new();

            $($guard)*

            acquire!(lock(self) self.0.lock());
            attempt!(try_lock(self) self.0.try_lock().is_some());
            release!(unlock(self) self.0.unlock(()));

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }
        }

        // SAFETY: as above; a fair release is a release.
        unsafe impl lock_api::RawMutexFair for $Mutex {
            release!(unlock_fair(self) self.0.$unlock_fair(()));
        }

        // SAFETY: as above; an attempt gives up no earlier than its deadline.
        unsafe impl lock_api::RawMutexTimed for $Mutex {
            type Duration = Duration;
            type Instant = Instant;

            attempt!(try_lock_for(self, limit: Duration)
                self.0.try_lock().is_some() || self.0.lock_until(Deadline::after(limit)).is_some());
            attempt!(try_lock_until(self, limit: Instant)
                self.0.try_lock().is_some() || self.0.lock_until(Deadline::at(limit)).is_some());
        }
    };
}
pub(crate) use traits;

/// The names that both versions have.
macro_rules! names {
    () => {
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
        /// As [`RwLockReadGuard`], and can become access to write; its drop unlocks.
        pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
        /// A [`RwLockReadGuard`] narrowed to a part of the data.
        pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
        /// A [`RwLockWriteGuard`] narrowed to a part of the data.
        pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
    };
}
pub(crate) use names;
