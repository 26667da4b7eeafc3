//! The typed face on the machine: lock_api's types over [`Raw`].

mod condvar;

pub use condvar::Condvar;
pub use lock_api::WaitTimeoutResult;

use super::{Raw, RawCondvar, Token};
use crate::raw::{RawMutex, RawMutexFair};
use crate::time::Deadline;
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

// SAFETY: our contract is lock_api's, put the other way round: exclusion between the return of an acquisition and the
// release of its token, acquire and release ordering between them, tokens may be forgotten, a locked mutex may be moved
// or dropped. `lock` returns with a token or does not return; `unlock` consumes it.
unsafe impl<L: RawMutex> lock_api::RawMutex for Raw<L> {
    const INIT: Self = Self::new(L::INIT);

    type Guard = Token<L::Token>;

    #[inline]
    fn lock(&self) -> Self::Guard {
        Token::new(self.inner().lock())
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        self.inner().try_lock().map(Token::new)
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: the caller passes the token of its acquisition of this mutex.
        unsafe { self.inner().unlock(guard.into_inner()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner().is_locked()
    }
}

// SAFETY: as `RawMutex`; `lock_until` gives up no earlier than its deadline.
unsafe impl<L: RawMutex> lock_api::RawMutexTimed for Raw<L> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard> {
        // The clock is not read if there is nothing to wait for.
        self.inner().try_lock().or_else(|| self.inner().lock_until(Deadline::after(timeout))).map(Token::new)
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> Option<Self::Guard> {
        self.inner().try_lock().or_else(|| self.inner().lock_until(Deadline::at(timeout))).map(Token::new)
    }
}

// SAFETY: as `RawMutex`; a fair release is a release.
unsafe impl<L: RawMutexFair> lock_api::RawMutexFair for Raw<L> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: Self::Guard) {
        // SAFETY: the caller passes the token of its acquisition of this mutex.
        unsafe { self.inner().unlock_fair(guard.into_inner()) };
    }
}
