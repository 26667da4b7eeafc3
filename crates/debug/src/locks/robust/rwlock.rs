//! The methods of a checked robust reader-writer lock.

use super::{Robust, RobustGuard, repairs};
use crate::seen::access::Access::{Read, Write};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::Global;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Bulk, Class, Urgent};
use ulocks_shm::robust::mutex::{LockError, Refused};
use ulocks_shm::robust::rwlock::{RobustPsRwLock, RobustReadGuard, RobustWriteGuard};
use ulocks_shm::slots::Member;

type ReadGuard<'a, T, const N: usize, P> = RobustGuard<RobustReadGuard<'a, T, N, P>>;
type WriteGuard<'a, T, const N: usize, P> = RobustGuard<RobustWriteGuard<'a, T, N, P>>;
type ReadResult<'a, T, const N: usize, P> = Result<ReadGuard<'a, T, N, P>, LockError<ReadGuard<'a, T, N, P>>>;
type WriteResult<'a, T, const N: usize, P> =
    Result<WriteGuard<'a, T, N, P>, LockError<WriteGuard<'a, T, N, P>>>;

const BULK: crate::Access = Read(Bulk::RANK as u8);
const URGENT: crate::Access = Read(Urgent::RANK as u8);

repairs!(RobustWriteGuard, [const N: usize], P: Policy<Scope = Global>);

impl<'a, T: ?Sized, const N: usize, P: Policy<Scope = Global>> WriteGuard<'a, T, N, P> {
    /// Lets the thread read from now on, and other readers with it. A dirty lock stays dirty.
    pub fn downgrade(self) -> ReadGuard<'a, T, N, P> {
        let Self { entry, guard } = self;
        RobustGuard { entry: entry.turned(BULK), guard: guard.downgrade() }
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = Global>> Robust<'_, RobustPsRwLock<T, N, P>> {
    /// As [`RobustPsRwLock::read`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::read`].
    #[track_caller]
    pub fn read<'b>(&'b self, me: &'b Member<'_>) -> ReadResult<'b, T, N, P> {
        self.acquire(BULK, || self.lock.try_read(me), || self.lock.read(me))
    }

    /// As [`RobustPsRwLock::read_urgent`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::read_urgent`].
    #[track_caller]
    pub fn read_urgent<'b>(&'b self, me: &'b Member<'_>) -> ReadResult<'b, T, N, P> {
        self.acquire(URGENT, || self.lock.try_read_urgent(me), || self.lock.read_urgent(me))
    }

    /// As [`RobustPsRwLock::try_read`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::try_read`].
    #[track_caller]
    pub fn try_read<'b>(&'b self, me: &'b Member<'_>) -> ReadResult<'b, T, N, P> {
        self.attempt(BULK, || self.lock.try_read(me), None::<fn() -> _>)
    }

    /// As [`RobustPsRwLock::try_read_for`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::try_read_for`].
    #[track_caller]
    pub fn try_read_for<'b>(&'b self, me: &'b Member<'_>, timeout: Duration) -> ReadResult<'b, T, N, P> {
        self.read_until(me, Deadline::after(timeout))
    }

    /// As [`RobustPsRwLock::read_until`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::read_until`].
    #[track_caller]
    pub fn read_until<'b>(&'b self, me: &'b Member<'_>, deadline: Deadline) -> ReadResult<'b, T, N, P> {
        self.attempt(BULK, || self.lock.try_read(me), Some(|| self.lock.read_until(me, deadline)))
    }

    /// As [`RobustPsRwLock::try_read_urgent`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::try_read_urgent`].
    #[track_caller]
    pub fn try_read_urgent<'b>(&'b self, me: &'b Member<'_>) -> ReadResult<'b, T, N, P> {
        self.attempt(URGENT, || self.lock.try_read_urgent(me), None::<fn() -> _>)
    }

    /// As [`RobustPsRwLock::read_urgent_until`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::read_urgent_until`].
    #[track_caller]
    pub fn read_urgent_until<'b>(
        &'b self,
        me: &'b Member<'_>,
        deadline: Deadline,
    ) -> ReadResult<'b, T, N, P> {
        let wait = || self.lock.read_urgent_until(me, deadline);
        self.attempt(URGENT, || self.lock.try_read_urgent(me), Some(wait))
    }

    /// As [`RobustPsRwLock::write`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::write`].
    #[track_caller]
    pub fn write<'b>(&'b self, me: &'b Member<'_>) -> WriteResult<'b, T, N, P> {
        self.acquire(Write, || self.lock.try_write(me), || self.lock.write(me))
    }

    /// As [`RobustPsRwLock::try_write`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::try_write`].
    #[track_caller]
    pub fn try_write<'b>(&'b self, me: &'b Member<'_>) -> WriteResult<'b, T, N, P> {
        self.attempt(Write, || self.lock.try_write(me), None::<fn() -> _>)
    }

    /// As [`RobustPsRwLock::try_write_for`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::try_write_for`].
    #[track_caller]
    pub fn try_write_for<'b>(&'b self, me: &'b Member<'_>, timeout: Duration) -> WriteResult<'b, T, N, P> {
        self.write_until(me, Deadline::after(timeout))
    }

    /// As [`RobustPsRwLock::write_until`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::write_until`].
    #[track_caller]
    pub fn write_until<'b>(&'b self, me: &'b Member<'_>, deadline: Deadline) -> WriteResult<'b, T, N, P> {
        self.attempt(Write, || self.lock.try_write(me), Some(|| self.lock.write_until(me, deadline)))
    }

    /// As [`RobustPsRwLock::reset`].
    ///
    /// # Errors
    /// As [`RobustPsRwLock::reset`].
    #[track_caller]
    pub fn reset<'b>(&'b self, me: &'b Member<'_>) -> Result<WriteGuard<'b, T, N, P>, Refused> {
        let reset = || self.lock.reset(me).map_err(LockError::Refused);
        let blocked = || Err(LockError::Refused(Refused::TimedOut));
        super::only_refused(self.acquire(Write, blocked, reset))
    }

    /// Whether a thread has the lock, living or dead, at the moment of the look.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}
