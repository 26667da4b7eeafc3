//! Acquisitions of a checked lock by tasks.
//!
//! A task has no thread: it may be polled by several, and its guard may be dropped by another one.
//! So a lock that a task has acquired is in the list of no thread. It has no order, is in no
//! deadlock that is reported, and any thread may release it. A thread that waits for it is listed
//! as a waiter.
//!
//! The lock itself says of a holder that is alone whether it is a task. Of a reader and of an
//! upgradable reader the token says it: the thread that releases may read the same lock itself.

use super::checker::Checked;
use super::mutex::CheckedMutex;
use super::rwlock::{CheckedReadToken, CheckedRw, CheckedRwLock, CheckedUpgradableToken};
use crate::seen::access::Access;
use crate::seen::report::Place;
use core::fmt;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use ulocks_core::futex::Local;
use ulocks_core::raw::{RawMutexAsync, RawRwLock, RawRwLockAsync};
use ulocks_core::task::{AsyncMutex, AsyncRwLock, LockOwnedAsync, ReadOwnedAsync, WriteOwnedAsync};

/// The future of an acquisition of the checked lock `L` by a task: `F`, that of the lock inside,
/// and what the checker enters.
#[must_use = "a future does nothing unless it is polled"]
pub struct CheckedAsync<'a, L, F: Future, K> {
    raw: F,
    lock: &'a L,
    /// Where it was asked for. A lock without a class is named so that a task acquires first.
    at: Place,
    /// Enters the acquisition, and makes the token of the checked lock.
    enter: fn(&L, F::Output, Place) -> K,
}

impl<L, F: Future, K> Future for CheckedAsync<'_, L, F, K> {
    type Output = K;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<K> {
        let (lock, at, enter) = (self.lock, self.at, self.enter);
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let raw = unsafe { self.map_unchecked_mut(|this| &mut this.raw) };
        raw.poll(context).map(|token| enter(lock, token, at))
    }
}

impl<L, F: Future + fmt::Debug, K> fmt::Debug for CheckedAsync<'_, L, F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

// SAFETY: as `RawMutex`: each token is one of the raw lock. A release of what no thread has listed
// is let through, whichever thread makes it.
unsafe impl<R: RawMutexAsync<Scope = Local> + Sync> RawMutexAsync for Checked<R> {
    type LockAsync<'a>
        = CheckedAsync<'a, Self, R::LockAsync<'a>, R::Token>
    where
        R: 'a;

    #[track_caller]
    fn lock_async(&self) -> Self::LockAsync<'_> {
        let (raw, at) = (self.inner().lock_async(), Location::caller());
        let enter = |lock: &Self, token, at| lock.0.untracked_at(at, Access::Exclusive, token);
        CheckedAsync { raw, lock: self, at, enter }
    }
}

impl<R: RawMutexAsync<Scope = Local> + Sync + 'static, T: ?Sized + 'static> CheckedMutex<R, T> {
    /// As [`lock_async`](AsyncMutex::lock_async), of a mutex of which the future, and then the
    /// guard, own a share.
    #[track_caller]
    pub fn lock_owned_async(self: Arc<Self>) -> LockOwnedAsync<Checked<R>, T> {
        AsyncMutex::lock_owned_async(self.share())
    }
}

impl<R: RawRwLock<Scope = Local>> CheckedRw<R> {
    /// A task writes, which asked for that at `at`.
    fn enter_task(&self, token: R::WriteToken, at: Place) -> R::WriteToken {
        self.0.untracked_at(at, Access::Write, token)
    }
}

// SAFETY: as `RawRwLock` and `RawRwLockUpgrade`: each token is one of the raw lock. A token of a
// task is in no list, so its release is let through, whichever thread makes it.
unsafe impl<R: RawRwLockAsync<Scope = Local> + Sync> RawRwLockAsync for CheckedRw<R> {
    type ReadAsync<'a>
        = CheckedAsync<'a, Self, R::ReadAsync<'a>, CheckedReadToken<R::ReadToken>>
    where
        R: 'a;
    type WriteAsync<'a>
        = CheckedAsync<'a, Self, R::WriteAsync<'a>, R::WriteToken>
    where
        R: 'a;
    type UpgradableAsync<'a>
        = CheckedAsync<'a, Self, R::UpgradableAsync<'a>, CheckedUpgradableToken<R::UpgradableToken>>
    where
        R: 'a;
    type UpgradeAsync<'a>
        = CheckedAsync<'a, Self, R::UpgradeAsync<'a>, R::WriteToken>
    where
        R: 'a;

    fn read_async(&self) -> Self::ReadAsync<'_> {
        let (raw, at) = (self.inner().read_async(), Location::caller());
        CheckedAsync { raw, lock: self, at, enter: |_, token, _| CheckedReadToken::of_task(token) }
    }

    #[track_caller]
    fn write_async(&self) -> Self::WriteAsync<'_> {
        let (raw, at) = (self.inner().write_async(), Location::caller());
        CheckedAsync { raw, lock: self, at, enter: Self::enter_task }
    }

    fn upgradable_async(&self) -> Self::UpgradableAsync<'_> {
        let (raw, at) = (self.inner().upgradable_async(), Location::caller());
        CheckedAsync { raw, lock: self, at, enter: |_, token, _| CheckedUpgradableToken::of_task(token) }
    }

    #[track_caller]
    unsafe fn upgrade_async(&self, token: Self::UpgradableToken) -> Self::UpgradeAsync<'_> {
        // What a thread has acquired is the task's from here on.
        self.leave_upgradable(&token);
        // SAFETY: the caller's promise.
        let raw = unsafe { self.inner().upgrade_async(token.token) };
        CheckedAsync { raw, lock: self, at: Location::caller(), enter: Self::enter_task }
    }
}

impl<R: RawRwLockAsync<Scope = Local> + Sync + 'static, T: ?Sized + 'static> CheckedRwLock<R, T> {
    /// As [`read_async`](AsyncRwLock::read_async), of a lock of which the future, and then the
    /// guard, own a share.
    pub fn read_owned_async(self: Arc<Self>) -> ReadOwnedAsync<CheckedRw<R>, T> {
        AsyncRwLock::read_owned_async(self.share())
    }

    /// As [`write_async`](AsyncRwLock::write_async), of a lock of which the future, and then the
    /// guard, own a share.
    #[track_caller]
    pub fn write_owned_async(self: Arc<Self>) -> WriteOwnedAsync<CheckedRw<R>, T> {
        AsyncRwLock::write_owned_async(self.share())
    }
}
