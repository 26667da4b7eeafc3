//! [`CheckedRw`]: a raw reader-writer lock with a checker around it.

mod classes;
mod traits;
mod typed;

pub use classes::ByClass;
pub use typed::CheckedRwLock;

use super::lock::Lock;
use crate::seen::access::Access;
use crate::seen::class::Origin;
use core::convert::Infallible;
use core::panic::Location;
use ulocks_core::futex::Local;
use ulocks_core::raw::{Initial, RawRwLock};

/// A raw reader-writer lock of the family that enforces its rules; see the [crate](crate).
///
/// [`CheckedRwLock`] is its typed face, and knows the line of its making. A lock that was made by
/// `INIT`, or is zeroed memory, has no class, and an order of its own.
///
/// It is the raw lock and two words. It cannot be shared between processes.
#[derive(Debug)]
pub struct CheckedRw<R: RawRwLock<Scope = Local>>(pub(super) Lock<R>);

/// What a reader of a [`CheckedRw`] hands to its release.
#[derive(Clone, Copy, Debug)]
pub struct CheckedReadToken<K> {
    token: K,
    /// In what way the lock was acquired, if that is known.
    access: Option<Access>,
    /// Whether a task has acquired. Then it is in the list of no thread.
    is_task: bool,
}

impl<K> CheckedReadToken<K> {
    /// A token of the raw lock, for a release by a thread that does not know the class of the
    /// reader.
    pub const fn new(token: K) -> Self {
        Self { token, access: None, is_task: false }
    }

    const fn of_thread(token: K, access: Access) -> Self {
        Self { token, access: Some(access), is_task: false }
    }

    pub(super) const fn of_task(token: K) -> Self {
        Self { token, access: None, is_task: true }
    }
}

/// What an upgradable reader of a [`CheckedRw`] hands to its release.
#[derive(Clone, Copy, Debug)]
pub struct CheckedUpgradableToken<K> {
    pub(super) token: K,
    /// As that of a [`CheckedReadToken`].
    is_task: bool,
}

impl<K> CheckedUpgradableToken<K> {
    /// A token of the raw lock, for a release by a thread.
    pub const fn new(token: K) -> Self {
        Self { token, is_task: false }
    }

    pub(super) const fn of_task(token: K) -> Self {
        Self { token, is_task: true }
    }
}

impl<R: RawRwLock<Scope = Local>> Initial for CheckedRw<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_origin(Origin::UNKNOWN);
}

impl<R: RawRwLock<Scope = Local>> CheckedRw<R> {
    pub(crate) const fn with_origin(origin: Origin) -> Self {
        Self(Lock::with_origin(origin))
    }

    /// The lock that is checked.
    pub const fn inner(&self) -> &R {
        &self.0.raw
    }

    /// Acquires in a way that the traits may not know: `attempt` does not wait, and `wait` does.
    #[inline]
    #[track_caller]
    fn acquire<K>(
        &self,
        how: (Access, u8),
        attempt: impl FnOnce(&R) -> Option<K>,
        wait: impl FnOnce(&R) -> K,
    ) -> K {
        let wait = |raw: &R| Ok::<_, Infallible>(wait(raw));
        let Ok(token) = self.0.acquire(how, Location::caller(), |raw| Ok(attempt(raw)), wait);
        token
    }

    /// The same with a deadline, or without waiting at all.
    #[inline]
    #[track_caller]
    fn attempt<K>(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<K>,
        wait: Option<impl FnOnce(&R) -> Option<K>>,
    ) -> Option<K> {
        let wait = wait.map(|wait| |raw: &R| Ok::<_, Infallible>(wait(raw)));
        let Ok(token) = self.0.attempt(access, Location::caller(), |raw| Ok(attempt(raw)), wait);
        token
    }

    /// As [`read`](RawRwLock::read), in a way that the trait does not know. `access` is one of
    /// [`Access::Read`] and [`Access::Recursive`]. `attempt` does not wait, and `wait` does.
    ///
    /// # Safety
    /// Both return tokens of an acquisition of the lock that they get.
    #[inline]
    #[track_caller]
    pub unsafe fn read_as(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<R::ReadToken>,
        wait: impl FnOnce(&R) -> R::ReadToken,
    ) -> CheckedReadToken<R::ReadToken> {
        let token = self.acquire((access, 0), attempt, wait);
        CheckedReadToken::of_thread(token, access)
    }

    /// As [`read_as`](Self::read_as), without waiting, or with a deadline: then `wait` gives up by
    /// itself.
    ///
    /// # Safety
    /// As [`read_as`](Self::read_as).
    #[inline]
    #[track_caller]
    pub unsafe fn try_read_as(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<R::ReadToken>,
        wait: Option<impl FnOnce(&R) -> Option<R::ReadToken>>,
    ) -> Option<CheckedReadToken<R::ReadToken>> {
        let token = self.attempt(access, attempt, wait)?;
        Some(CheckedReadToken::of_thread(token, access))
    }

    /// Enters a release, before the raw lock makes it. Returns whether it may.
    #[inline]
    #[track_caller]
    fn leave(&self, access: Access, exact: bool) -> bool {
        self.0.leave(access, exact, R::is_locked)
    }

    #[inline]
    #[track_caller]
    fn leave_read(&self, token: &CheckedReadToken<R::ReadToken>) -> bool {
        token.is_task || self.leave(token.access.unwrap_or(Access::Read(0)), token.access.is_some())
    }

    #[inline]
    #[track_caller]
    pub(super) fn leave_upgradable<K>(&self, token: &CheckedUpgradableToken<K>) -> bool {
        token.is_task || self.leave(Access::Upgradable, true)
    }
}

impl<R: RawRwLock<Scope = Local>> Drop for CheckedRw<R> {
    #[track_caller]
    fn drop(&mut self) {
        self.0.dropped(R::is_locked, false);
    }
}
