//! The typed face on the machine: lock_api's types over [`Raw`].

// What acquires and releases is `#[track_caller]`, without a closure in between. So a raw lock that
// looks for misuse can name the line of its user. A raw lock that is not `#[track_caller]` itself
// pays nothing for it. Each macro makes a method of lock_api of the method of a raw lock.

macro_rules! acquires {
    ($method:ident = $acquire:ident -> $Guard:ident) => {
        #[inline]
        #[track_caller]
        fn $method(&self) -> Self::$Guard {
            Token::new(self.inner().$acquire())
        }
    };
}

macro_rules! attempts {
    ($method:ident = $attempt:ident -> $Guard:ident) => {
        #[inline]
        #[track_caller]
        fn $method(&self) -> Option<Self::$Guard> {
            self.inner().$attempt().map(Token::new)
        }
    };
    ($method:ident($limit:ty) = $attempt:ident, $until:ident($deadline:path) -> $Guard:ident) => {
        #[inline]
        #[track_caller]
        fn $method(&self, limit: $limit) -> Option<Self::$Guard> {
            // The clock is not read if there is nothing to wait for.
            let token = match self.inner().$attempt() {
                None => self.inner().$until($deadline(limit)),
                token => token,
            };
            token.map(Token::new)
        }
    };
}

macro_rules! releases {
    ($method:ident($Guard:ident) = $release:ident) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&self, guard: Self::$Guard) {
            // SAFETY: the caller passes the token of its acquisition of this lock.
            unsafe { self.inner().$release(guard.into_inner()) };
        }
    };
}

mod condvar;
mod reentrant;
mod rwlock;

pub use condvar::Condvar;
pub(crate) use condvar::wait_until;
pub use lock_api::WaitTimeoutResult;
#[cfg(feature = "arc_lock")]
pub use reentrant::ArcReentrantMutexGuard;
pub use reentrant::{MappedReentrantMutexGuard, ReentrantMutex, ReentrantMutexGuard, ThreadId};
#[cfg(feature = "arc_lock")]
pub use rwlock::{ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, read_with,
};
pub(crate) use rwlock::{forget_upgradable, upgradable_guard, write_guard};

use super::{Raw, RawCondvar, Token};
use crate::lock::traits::{RawMutex, RawMutexFair};
use crate::sys::time::Deadline;
use core::time::Duration;
use std::time::Instant;

/// Data behind a lock.
pub type Mutex<L, T> = lock_api::Mutex<Raw<L>, T>;
/// Access to the data of a [`Mutex`]; its drop releases the lock.
pub type MutexGuard<'a, L, T> = lock_api::MutexGuard<'a, Raw<L>, T>;
/// Access to a part of the data of a [`Mutex`]; its drop releases the lock.
pub type MappedMutexGuard<'a, L, T> = lock_api::MappedMutexGuard<'a, Raw<L>, T>;
/// As [`MutexGuard`], and owns a share of the mutex.
#[cfg(feature = "arc_lock")]
pub type ArcMutexGuard<L, T> = lock_api::ArcMutexGuard<Raw<L>, T>;

/// Acquires the lock of `mutex` in a way that the traits do not know: one that can fail, or that
/// tells more.
///
/// # Errors
/// Those of `acquire`.
///
/// # Safety
/// `acquire` returns `Ok` only with the token of an acquisition of the very lock it gets.
#[inline]
pub unsafe fn lock_with<'a, L: RawMutex, T: ?Sized, E>(
    mutex: &'a Mutex<L, T>,
    acquire: impl FnOnce(&L) -> Result<L::Token, E>,
) -> Result<MutexGuard<'a, L, T>, E> {
    // SAFETY: the lock is acquired, which disturbs no guard.
    let token = acquire(unsafe { mutex.raw() }.inner())?;
    // SAFETY: by the caller's promise the lock is held by this token, and this is the only guard
    // made of it.
    Ok(unsafe { mutex.make_guard_unchecked(Token::new(token)) })
}

/// Gives up the lock of `guard` for as long as `wait` takes, which acquires it again or fails;
/// there is no guard then.
///
/// # Errors
/// Those of `wait`.
///
/// # Safety
/// `wait` is called by a holder of the lock it gets. It returns `Ok` only if the calling thread
/// holds the lock again.
pub unsafe fn wait_with<'a, L: RawMutex<Token = ()>, T: ?Sized, E>(
    guard: MutexGuard<'a, L, T>,
    wait: impl FnOnce(&L) -> Result<(), E>,
) -> Result<MutexGuard<'a, L, T>, E> {
    let mutex = MutexGuard::<L, T>::mutex(&guard);
    // Its token is nothing; from here on there is no guard, whatever becomes of the lock.
    core::mem::forget(guard);
    // SAFETY: as in `lock_with`; between the two guards no code relies on the lock.
    unsafe { lock_with(mutex, wait) }
}

// SAFETY: our contract is lock_api's, put the other way round: exclusion between the return of an
// acquisition and the release of its token, acquire and release ordering between them, tokens may
// be forgotten, a locked mutex may be moved or dropped. `lock` returns with a token or does not
// return; `unlock` consumes it.
unsafe impl<L: RawMutex> lock_api::RawMutex for Raw<L> {
    const INIT: Self = Self::new(L::INIT);

    type Guard = Token<L::Token>;

    acquires!(lock = lock -> Guard);
    attempts!(try_lock = try_lock -> Guard);
    releases!(unlock(Guard) = unlock);

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner().is_locked()
    }
}

// SAFETY: as `RawMutex`; `lock_until` gives up no earlier than its deadline.
unsafe impl<L: RawMutex> lock_api::RawMutexTimed for Raw<L> {
    type Duration = Duration;
    type Instant = Instant;

    attempts!(try_lock_for(Duration) = try_lock, lock_until(Deadline::after) -> Guard);
    attempts!(try_lock_until(Instant) = try_lock, lock_until(Deadline::at) -> Guard);
}

// SAFETY: as `RawMutex`; a fair release is a release.
unsafe impl<L: RawMutexFair> lock_api::RawMutexFair for Raw<L> {
    releases!(unlock_fair(Guard) = unlock_fair);
}
