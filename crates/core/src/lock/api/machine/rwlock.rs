//! The reader-writer lock on the machine: lock_api's types over [`Raw`].
//!
//! No closure stands between lock_api and the raw lock: it would be the caller that the raw lock
//! sees, and not the user.

use super::{Raw, Token};
use crate::lock::traits::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use crate::sys::time::Deadline;
use core::time::Duration;
use std::time::Instant;

/// Data behind a reader-writer lock.
pub type RwLock<L, T> = lock_api::RwLock<Raw<L>, T>;
/// Shared access to the data of an [`RwLock`]; its drop releases the lock.
pub type RwLockReadGuard<'a, L, T> = lock_api::RwLockReadGuard<'a, Raw<L>, T>;
/// Exclusive access to the data of an [`RwLock`]; its drop releases the lock.
pub type RwLockWriteGuard<'a, L, T> = lock_api::RwLockWriteGuard<'a, Raw<L>, T>;
/// Shared access to the data of an [`RwLock`] that can become exclusive; its drop releases the
/// lock.
pub type RwLockUpgradableReadGuard<'a, L, T> = lock_api::RwLockUpgradableReadGuard<'a, Raw<L>, T>;
/// Shared access to a part of the data of an [`RwLock`]; its drop releases the lock.
pub type MappedRwLockReadGuard<'a, L, T> = lock_api::MappedRwLockReadGuard<'a, Raw<L>, T>;
/// Exclusive access to a part of the data of an [`RwLock`]; its drop releases the lock.
pub type MappedRwLockWriteGuard<'a, L, T> = lock_api::MappedRwLockWriteGuard<'a, Raw<L>, T>;
/// As [`RwLockReadGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockReadGuard<L, T> = lock_api::ArcRwLockReadGuard<Raw<L>, T>;
/// As [`RwLockWriteGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockWriteGuard<L, T> = lock_api::ArcRwLockWriteGuard<Raw<L>, T>;
/// As [`RwLockUpgradableReadGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockUpgradableReadGuard<L, T> = lock_api::ArcRwLockUpgradableReadGuard<Raw<L>, T>;

/// Acquires `rwlock` for reading in a way that the traits do not know: as a reader of some class,
/// or one that can fail.
///
/// # Errors
/// Those of `acquire`.
///
/// # Safety
/// `acquire` returns `Ok` only with the token of an acquisition of the very lock it gets.
#[inline]
#[track_caller]
pub unsafe fn read_with<'a, L: RawRwLock, T: ?Sized, E>(
    rwlock: &'a RwLock<L, T>,
    acquire: impl FnOnce(&L) -> Result<L::ReadToken, E>,
) -> Result<RwLockReadGuard<'a, L, T>, E> {
    // SAFETY: the lock is acquired, which disturbs no guard.
    let token = acquire(unsafe { rwlock.raw() }.inner())?;
    // SAFETY: by the caller's promise the lock is held by this token, and this is the only guard
    // made of it.
    Ok(unsafe { rwlock.make_read_guard_unchecked(Token::new(token)) })
}

/// What the result of an upgrade is to lock_api.
#[inline]
fn tokens<W, U>(result: Result<W, U>) -> Result<Token<W>, Token<U>> {
    match result {
        Ok(token) => Ok(Token::new(token)),
        Err(token) => Err(Token::new(token)),
    }
}

// SAFETY: our contract is lock_api's: readers or one writer, a release happens before the
// acquisitions it makes way for, tokens may be forgotten, a locked lock may be moved or dropped. An
// acquisition returns with a token or does not return; a release consumes it.
unsafe impl<L: RawRwLock> lock_api::RawRwLock for Raw<L> {
    const INIT: Self = Self::new(L::INIT);

    type SharedGuard = Token<L::ReadToken>;
    type ExclusiveGuard = Token<L::WriteToken>;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> Self::SharedGuard {
        Token::new(self.inner().read())
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        self.inner().try_read().map(Token::new)
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_read(guard.into_inner()) };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        Token::new(self.inner().write())
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        self.inner().try_write().map(Token::new)
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_write(guard.into_inner()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner().is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.inner().is_write_locked()
    }
}

// In what is timed the lock is tried first: the clock is not read if there is nothing to wait for.

// SAFETY: as `RawRwLock`; what gives up does so no earlier than its deadline.
unsafe impl<L: RawRwLock> lock_api::RawRwLockTimed for Raw<L> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Self::SharedGuard> {
        let token = match self.inner().try_read() {
            None => self.inner().read_until(Deadline::after(timeout)),
            token => token,
        };
        token.map(Token::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<Self::SharedGuard> {
        let token = match self.inner().try_read() {
            None => self.inner().read_until(Deadline::at(timeout)),
            token => token,
        };
        token.map(Token::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Self::ExclusiveGuard> {
        let token = match self.inner().try_write() {
            None => self.inner().write_until(Deadline::after(timeout)),
            token => token,
        };
        token.map(Token::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<Self::ExclusiveGuard> {
        let token = match self.inner().try_write() {
            None => self.inner().write_until(Deadline::at(timeout)),
            token => token,
        };
        token.map(Token::new)
    }
}

// SAFETY: as `RawRwLock`; a fair release is a release.
unsafe impl<L: RawRwLockFair> lock_api::RawRwLockFair for Raw<L> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_shared_fair(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_read_fair(guard.into_inner()) };
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive_fair(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_write_fair(guard.into_inner()) };
    }
}

// SAFETY: as `RawRwLock`; a downgrade releases to later acquisitions and lets no writer in.
unsafe impl<L: RawRwLockDowngrade> lock_api::RawRwLockDowngrade for Raw<L> {
    #[inline]
    #[track_caller]
    unsafe fn downgrade(&self, guard: Self::ExclusiveGuard) -> Self::SharedGuard {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        Token::new(unsafe { self.inner().downgrade(guard.into_inner()) })
    }
}

// SAFETY: as `RawRwLock`; one upgradable holder at most, and its upgrade comes after the releases
// of the readers. A failed one returns the token of the upgradable access, which is as it was.
unsafe impl<L: RawRwLockUpgrade> lock_api::RawRwLockUpgrade for Raw<L> {
    type UpgradableGuard = Token<L::UpgradableToken>;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> Self::UpgradableGuard {
        Token::new(self.inner().upgradable())
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
        self.inner().try_upgradable().map(Token::new)
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable(&self, guard: Self::UpgradableGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_upgradable(guard.into_inner()) };
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self, guard: Self::UpgradableGuard) -> Self::ExclusiveGuard {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        Token::new(unsafe { self.inner().upgrade(guard.into_inner()) })
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(
        &self,
        guard: Self::UpgradableGuard,
    ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        tokens(unsafe { self.inner().try_upgrade(guard.into_inner()) })
    }
}

// SAFETY: as the traits above; what gives up does so no earlier than its deadline.
unsafe impl<L: RawRwLockUpgrade> lock_api::RawRwLockUpgradeTimed for Raw<L> {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Self::UpgradableGuard> {
        let token = match self.inner().try_upgradable() {
            None => self.inner().upgradable_until(Deadline::after(timeout)),
            token => token,
        };
        token.map(Token::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<Self::UpgradableGuard> {
        let token = match self.inner().try_upgradable() {
            None => self.inner().upgradable_until(Deadline::at(timeout)),
            token => token,
        };
        token.map(Token::new)
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_for(
        &self,
        guard: Self::UpgradableGuard,
        timeout: Duration,
    ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        tokens(match unsafe { self.inner().try_upgrade(guard.into_inner()) } {
            // SAFETY: the upgradable access is still held by the token that came back.
            Err(token) => unsafe { self.inner().upgrade_until(token, Deadline::after(timeout)) },
            upgraded => upgraded,
        })
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_until(
        &self,
        guard: Self::UpgradableGuard,
        timeout: Instant,
    ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        tokens(match unsafe { self.inner().try_upgrade(guard.into_inner()) } {
            // SAFETY: the upgradable access is still held by the token that came back.
            Err(token) => unsafe { self.inner().upgrade_until(token, Deadline::at(timeout)) },
            upgraded => upgraded,
        })
    }
}

// SAFETY: as the traits above.
unsafe impl<L: RawRwLockUpgrade> lock_api::RawRwLockUpgradeDowngrade for Raw<L> {
    #[inline]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self, guard: Self::UpgradableGuard) -> Self::SharedGuard {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        Token::new(unsafe { self.inner().downgrade_upgradable(guard.into_inner()) })
    }

    #[inline]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self, guard: Self::ExclusiveGuard) -> Self::UpgradableGuard {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        Token::new(unsafe { self.inner().downgrade_to_upgradable(guard.into_inner()) })
    }
}

// SAFETY: as the traits above; a fair release is a release.
unsafe impl<L: RawRwLockUpgradeFair> lock_api::RawRwLockUpgradeFair for Raw<L> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable_fair(&self, guard: Self::UpgradableGuard) {
        // SAFETY: the caller passes the token of its acquisition of this lock.
        unsafe { self.inner().unlock_upgradable_fair(guard.into_inner()) };
    }
}
