//! The methods of a checked robust mutex.

use super::{Robust, RobustGuard, repairs};
use crate::seen::access::Access::Exclusive;
use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::robust::mutex::{self, LockError, Refused, RobustMutex};
use ulocks_shm::slots::Member;

type Guard<'a, T, L> = RobustGuard<mutex::RobustGuard<'a, T, L>>;
type LockResult<'a, T, L> = Result<Guard<'a, T, L>, LockError<Guard<'a, T, L>>>;

use mutex::RobustGuard as OfMutex;
repairs!(OfMutex, L: RawRobust);

impl<T: ?Sized, L: RawRobust> Robust<'_, RobustMutex<T, L>> {
    /// As [`RobustMutex::lock`].
    ///
    /// # Errors
    /// As [`RobustMutex::lock`].
    #[track_caller]
    pub fn lock<'b>(&'b self, me: &'b Member<'_>) -> LockResult<'b, T, L> {
        self.acquire(Exclusive, || self.lock.try_lock(me), || self.lock.lock(me))
    }

    /// As [`RobustMutex::try_lock`].
    ///
    /// # Errors
    /// As [`RobustMutex::try_lock`].
    #[track_caller]
    pub fn try_lock<'b>(&'b self, me: &'b Member<'_>) -> LockResult<'b, T, L> {
        self.attempt(Exclusive, || self.lock.try_lock(me), None::<fn() -> _>)
    }

    /// As [`RobustMutex::try_lock_for`].
    ///
    /// # Errors
    /// As [`RobustMutex::try_lock_for`].
    #[track_caller]
    pub fn try_lock_for<'b>(&'b self, me: &'b Member<'_>, timeout: Duration) -> LockResult<'b, T, L> {
        self.lock_until(me, Deadline::after(timeout))
    }

    /// As [`RobustMutex::lock_until`].
    ///
    /// # Errors
    /// As [`RobustMutex::lock_until`].
    #[track_caller]
    pub fn lock_until<'b>(&'b self, me: &'b Member<'_>, deadline: Deadline) -> LockResult<'b, T, L> {
        self.attempt(Exclusive, || self.lock.try_lock(me), Some(|| self.lock.lock_until(me, deadline)))
    }

    /// As [`RobustMutex::reset`].
    ///
    /// # Errors
    /// As [`RobustMutex::reset`].
    #[track_caller]
    pub fn reset<'b>(&'b self, me: &'b Member<'_>) -> Result<Guard<'b, T, L>, Refused> {
        let reset = || self.lock.reset(me).map_err(LockError::Refused);
        // An attempt would leave a lock that is not recoverable as it is.
        let blocked = || Err(LockError::Refused(Refused::TimedOut));
        super::only_refused(self.acquire(Exclusive, blocked, reset))
    }

    /// Whether a thread holds the mutex, living or dead, at the moment of the look.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}
