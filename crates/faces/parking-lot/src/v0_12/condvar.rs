//! The condition variable: lock_api 0.4 has none.

use super::MutexGuard;
use super::super::locks;
use core::fmt;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::time::Deadline;

/// Whether a wait ended by its deadline.
#[derive(Debug, PartialEq, Eq, Copy, Clone)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it did.
    #[inline]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// Waits until something is true under a [`Mutex`](super::Mutex).
///
/// Notifications count exactly; a wait ends only by one of them, or by its deadline.
///
/// # Panics
/// A wait with another mutex than the one that threads wait with.
pub struct Condvar(locks::Condvar);

impl Condvar {
    /// A condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Self(locks::Condvar::new())
    }

    /// Notifies the thread that has waited longest. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all threads that wait. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    fn wait_before<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Option<Deadline>,
    ) -> WaitTimeoutResult {
        // SAFETY: what is done with the lock restores what the guard stands for: the guard holds
        // it, and `wait` returns or panics holding it.
        WaitTimeoutResult(unsafe { self.0.wait(MutexGuard::mutex(guard).raw(), deadline) })
    }

    /// Waits for a notification.
    ///
    /// # Panics
    /// If threads wait with another mutex.
    #[inline]
    pub fn wait<T: ?Sized>(&self, mutex_guard: &mut MutexGuard<'_, T>) {
        self.wait_before(mutex_guard, None);
    }

    /// Waits for a notification, or until `timeout`.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn wait_until<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_before(mutex_guard, Some(Deadline::at(timeout)))
    }

    /// Waits for a notification, for `timeout` at most.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn wait_for<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_before(mutex_guard, Some(Deadline::after(timeout)))
    }

    fn wait_while_before<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Option<Deadline>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(guard) {
            result = self.wait_before(guard, deadline);
        }
        result
    }

    /// Waits for notifications until `condition` is false.
    ///
    /// # Panics
    /// As [`wait`](Self::wait), and if `condition` does.
    #[inline]
    pub fn wait_while<T, F>(&self, mutex_guard: &mut MutexGuard<'_, T>, condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(mutex_guard, condition, None);
    }

    /// Waits for notifications until `condition` is false, or until `timeout`. After that it does
    /// not look at `condition` again.
    ///
    /// # Panics
    /// As [`wait_while`](Self::wait_while).
    #[inline]
    pub fn wait_while_until<T, F>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Instant,
    ) -> WaitTimeoutResult
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(mutex_guard, condition, Some(Deadline::at(timeout)))
    }

    /// Waits for notifications until `condition` is false, for `timeout` at most. After that it
    /// does not look at `condition` again.
    ///
    /// # Panics
    /// As [`wait_while`](Self::wait_while).
    #[inline]
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(mutex_guard, condition, Some(Deadline::after(timeout)))
    }
}

impl Default for Condvar {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
