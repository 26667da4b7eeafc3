//! `Condvar`, as in lock_api.

use super::RawCondvar;
use super::guard::MutexGuard;
use crate::lock::condvar::Wakeup;
use crate::lock::traits::RawMutex;
use crate::sys::time::Deadline;
use core::fmt;
use core::time::Duration;
use std::time::Instant;

/// Whether a timed wait on a condition variable timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// True if the wait is known to have timed out.
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

/// A condition variable for a [`Mutex`](super::Mutex) of the same raw lock.
pub struct Condvar<L: RawMutex>(RawCondvar<L>);

impl<L: RawMutex> Condvar<L> {
    /// A condition variable without waiters.
    #[track_caller]
    pub fn new() -> Self {
        Self(RawCondvar::new())
    }

    /// The condition variable itself.
    pub fn raw(&self) -> &RawCondvar<L> {
        &self.0
    }

    /// Wakes one waiter. Waits may end spuriously, so by lock_api's rule this does not say whether
    /// it did.
    pub fn notify_one(&self) -> bool {
        self.0.inner().notify_one();
        false
    }

    /// Wakes every waiter. Waits may end spuriously, so by lock_api's rule this does not say how
    /// many.
    pub fn notify_all(&self) -> usize {
        self.0.inner().notify_all();
        0
    }

    #[track_caller]
    fn wait_with<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, L, T>,
        deadline: Option<Deadline>,
    ) -> WaitTimeoutResult {
        let wakeup = MutexGuard::without(guard, |lock, token| {
            // SAFETY: the token is the one of the guard, which holds the lock.
            unsafe { self.0.inner().wait(lock, token, deadline) }
        });
        WaitTimeoutResult(wakeup == Wakeup::TimedOut)
    }

    /// Releases the mutex and sleeps until notified, then acquires it again. May end spuriously.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, mutex_guard: &mut MutexGuard<'_, L, T>) {
        self.wait_with(mutex_guard, None);
    }

    /// Waits for as long as `condition` holds.
    #[track_caller]
    pub fn wait_while<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, L, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(mutex_guard) {
            self.wait(mutex_guard);
        }
    }

    /// As [`Condvar::wait`], giving up at `timeout`.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, L, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_with(mutex_guard, Some(Deadline::at(timeout)))
    }

    /// As [`Condvar::wait`], giving up after `timeout`.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, L, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_with(mutex_guard, Some(Deadline::after(timeout)))
    }

    /// Waits for as long as `condition` holds, giving up at `timeout`. Timed out means that it
    /// still holds.
    #[track_caller]
    pub fn wait_while_until<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, L, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_with(mutex_guard, condition, Deadline::at(timeout))
    }

    /// Waits for as long as `condition` holds, giving up after `timeout`. Timed out means that it
    /// still holds.
    #[track_caller]
    pub fn wait_while_for<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, L, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_while_with(mutex_guard, condition, Deadline::after(timeout))
    }

    #[track_caller]
    fn wait_while_with<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, L, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Deadline,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        loop {
            if !condition(guard) {
                return WaitTimeoutResult(false);
            }
            if result.timed_out() {
                return result;
            }
            result = self.wait_with(guard, Some(deadline));
        }
    }
}

/// Waits on `condvar` until `deadline`. Whether it was notified, perhaps spuriously.
#[track_caller]
pub(crate) fn wait_until<L: RawMutex, T: ?Sized>(
    condvar: &Condvar<L>,
    guard: &mut MutexGuard<'_, L, T>,
    deadline: Deadline,
) -> bool {
    !condvar.wait_with(guard, Some(deadline)).timed_out()
}

impl<L: RawMutex> Default for Condvar<L> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<L: RawMutex> fmt::Debug for Condvar<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
