//! Acquisitions of a checked lock by tasks.
//!
//! A task has no thread: it may be polled by several, and its guard may be dropped by another one.
//! So a lock that a task has acquired is in the list of no thread. It has no order, is in no
//! deadlock that is reported, and any thread may release it. A thread that waits for it is listed
//! as a waiter.

use super::checker::Checked;
use super::mutex::CheckedMutex;
use crate::seen::access::Access::Exclusive;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutexAsync;
use ulocks_core::task::{AsyncMutex, LockOwnedAsync};

/// The future of an acquisition of a [`Checked`] mutex by a task.
#[must_use = "a future does nothing unless it is polled"]
pub struct CheckedLockAsync<'a, R: RawMutexAsync<Scope = Local> + 'a> {
    raw: R::LockAsync<'a>,
    lock: &'a Checked<R>,
}

impl<R: RawMutexAsync<Scope = Local>> Future for CheckedLockAsync<'_, R> {
    type Output = R::Token;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R::Token> {
        let lock = self.lock;
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let raw = unsafe { self.map_unchecked_mut(|this| &mut this.raw) };
        raw.poll(context).map(|token| lock.0.untracked(Exclusive, token))
    }
}

impl<'a, R: RawMutexAsync<Scope = Local>> fmt::Debug for CheckedLockAsync<'a, R>
where
    R::LockAsync<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

// SAFETY: as `RawMutex`: each token is one of the raw lock. A release of what no thread has listed
// is let through, whichever thread makes it.
unsafe impl<R: RawMutexAsync<Scope = Local> + Sync> RawMutexAsync for Checked<R> {
    type LockAsync<'a>
        = CheckedLockAsync<'a, R>
    where
        R: 'a;

    fn lock_async(&self) -> CheckedLockAsync<'_, R> {
        CheckedLockAsync { raw: self.inner().lock_async(), lock: self }
    }
}

impl<R: RawMutexAsync<Scope = Local> + Sync + 'static, T: ?Sized + 'static> CheckedMutex<R, T> {
    /// As [`lock_async`](AsyncMutex::lock_async), of a mutex of which the future, and then the
    /// guard, own a share.
    pub fn lock_owned_async(self: Arc<Self>) -> LockOwnedAsync<Checked<R>, T> {
        AsyncMutex::lock_owned_async(self.share())
    }
}
