//! The reader-writer lock on the machine: lock_api's types over [`Raw`].
//!
//! No closure stands between lock_api and the raw lock: it would be the caller that the raw lock
//! sees, and not the user.

use super::{Raw, Token};
use crate::lock::traits::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use crate::sys::sync::NoUnwinding;
use crate::sys::time::Deadline;
use core::ptr;
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

/// The guard of an acquisition for writing that was made elsewhere.
///
/// # Safety
/// `token` comes from an acquisition of the lock of `rwlock`, and no other guard stands for that.
#[inline]
pub(crate) unsafe fn write_guard<L: RawRwLock, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::WriteToken,
) -> RwLockWriteGuard<'_, L, T> {
    // SAFETY: the caller's promise.
    unsafe { rwlock.make_write_guard_unchecked(Token::new(token)) }
}

/// The guard of an upgradable acquisition that was made elsewhere.
///
/// # Safety
/// As [`write_guard`].
#[inline]
pub(crate) unsafe fn upgradable_guard<L: RawRwLockUpgrade, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::UpgradableToken,
) -> RwLockUpgradableReadGuard<'_, L, T> {
    // SAFETY: the caller's promise.
    unsafe { rwlock.make_upgradable_guard_unchecked(Token::new(token)) }
}

/// Takes an upgradable guard apart. The caller now has the access.
#[inline]
pub(crate) fn forget_upgradable<'a, L: RawRwLockUpgrade, T: ?Sized>(
    guard: RwLockUpgradableReadGuard<'a, L, T>,
) -> &'a RwLock<L, T> {
    let rwlock = RwLockUpgradableReadGuard::<L, T>::rwlock(&guard);
    core::mem::forget(guard);
    rwlock
}

macro_rules! exchanges {
    ($method:ident($From:ident) -> $To:ident) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&self, guard: Self::$From) -> Self::$To {
            // SAFETY: the caller passes the token of its acquisition of this lock.
            Token::new(unsafe { self.inner().$method(guard.into_inner()) })
        }
    };
}

/// What the result of an upgrade is to lock_api.
#[inline]
fn tokens<W, U>(result: Result<W, U>) -> Result<Token<W>, Token<U>> {
    match result {
        Ok(token) => Ok(Token::new(token)),
        Err(token) => Err(Token::new(token)),
    }
}

macro_rules! upgrades {
    ($method:ident($limit:ty) = $deadline:path) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(
            &self,
            guard: Self::UpgradableGuard,
            limit: $limit,
        ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
            // SAFETY: the caller passes the token of its acquisition of this lock.
            tokens(match unsafe { self.inner().try_upgrade(guard.into_inner()) } {
                // SAFETY: the upgradable access is still held by the token that came back.
                Err(token) => unsafe { self.inner().upgrade_until(token, $deadline(limit)) },
                upgraded => upgraded,
            })
        }
    };
}

// SAFETY: our contract is lock_api's: readers or one writer, a release happens before the
// acquisitions it makes way for, tokens may be forgotten, a locked lock may be moved or dropped. An
// acquisition returns with a token or does not return; a release consumes it.
unsafe impl<L: RawRwLock> lock_api::RawRwLock for Raw<L> {
    const INIT: Self = Self::new(L::INIT);

    type SharedGuard = Token<L::ReadToken>;
    type ExclusiveGuard = Token<L::WriteToken>;

    acquires!(lock_shared = read -> SharedGuard);
    attempts!(try_lock_shared = try_read -> SharedGuard);
    releases!(unlock_shared(SharedGuard) = unlock_read);
    acquires!(lock_exclusive = write -> ExclusiveGuard);
    attempts!(try_lock_exclusive = try_write -> ExclusiveGuard);
    releases!(unlock_exclusive(ExclusiveGuard) = unlock_write);

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner().is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.inner().is_write_locked()
    }
}

// SAFETY: as `RawRwLock`; what gives up does so no earlier than its deadline.
unsafe impl<L: RawRwLock> lock_api::RawRwLockTimed for Raw<L> {
    type Duration = Duration;
    type Instant = Instant;

    attempts!(try_lock_shared_for(Duration) = try_read, read_until(Deadline::after) -> SharedGuard);
    attempts!(try_lock_shared_until(Instant) = try_read, read_until(Deadline::at) -> SharedGuard);
    attempts!(try_lock_exclusive_for(Duration) = try_write, write_until(Deadline::after) -> ExclusiveGuard);
    attempts!(try_lock_exclusive_until(Instant) = try_write, write_until(Deadline::at) -> ExclusiveGuard);
}

// SAFETY: as `RawRwLock`; a fair release is a release. A bump that panics aborts.
unsafe impl<L: RawRwLockFair> lock_api::RawRwLockFair for Raw<L> {
    releases!(unlock_shared_fair(SharedGuard) = unlock_read_fair);
    releases!(unlock_exclusive_fair(ExclusiveGuard) = unlock_write_fair);

    // That of lock_api would acquire as `read` does, whatever kind of reader the guard is of.
    #[inline]
    #[track_caller]
    unsafe fn bump_shared(&self, guard: &mut Self::SharedGuard) {
        const WHY: &str =
            "ulocks: the process aborts, because this panic would leave a guard without its lock\n";
        let bumps = NoUnwinding::because(WHY);
        // SAFETY: `guard` is valid, and is not used until it has another token; a panic aborts.
        let token = unsafe { ptr::read(guard) };
        // SAFETY: the caller passes the token of its acquisition of this lock.
        let token = unsafe { self.inner().bump_read(token.into_inner()) };
        // SAFETY: as for the read.
        unsafe { ptr::write(guard, Token::new(token)) };
        bumps.end();
    }
}

// SAFETY: as `RawRwLock`; a downgrade releases to later acquisitions and lets no writer in.
unsafe impl<L: RawRwLockDowngrade> lock_api::RawRwLockDowngrade for Raw<L> {
    exchanges!(downgrade(ExclusiveGuard) -> SharedGuard);
}

// SAFETY: as `RawRwLock`; one upgradable holder at most, and its upgrade comes after the releases
// of the readers. A failed one returns the token of the upgradable access, which is as it was.
unsafe impl<L: RawRwLockUpgrade> lock_api::RawRwLockUpgrade for Raw<L> {
    type UpgradableGuard = Token<L::UpgradableToken>;

    acquires!(lock_upgradable = upgradable -> UpgradableGuard);
    attempts!(try_lock_upgradable = try_upgradable -> UpgradableGuard);
    releases!(unlock_upgradable(UpgradableGuard) = unlock_upgradable);
    exchanges!(upgrade(UpgradableGuard) -> ExclusiveGuard);

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
    attempts!(try_lock_upgradable_for(Duration)
        = try_upgradable, upgradable_until(Deadline::after) -> UpgradableGuard);
    attempts!(try_lock_upgradable_until(Instant)
        = try_upgradable, upgradable_until(Deadline::at) -> UpgradableGuard);
    upgrades!(try_upgrade_for(Duration) = Deadline::after);
    upgrades!(try_upgrade_until(Instant) = Deadline::at);
}

// SAFETY: as the traits above.
unsafe impl<L: RawRwLockUpgrade> lock_api::RawRwLockUpgradeDowngrade for Raw<L> {
    exchanges!(downgrade_upgradable(UpgradableGuard) -> SharedGuard);
    exchanges!(downgrade_to_upgradable(ExclusiveGuard) -> UpgradableGuard);
}

// SAFETY: as the traits above; a fair release is a release.
unsafe impl<L: RawRwLockUpgradeFair> lock_api::RawRwLockUpgradeFair for Raw<L> {
    releases!(unlock_upgradable_fair(UpgradableGuard) = unlock_upgradable_fair);
}
