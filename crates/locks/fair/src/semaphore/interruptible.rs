//! Acquisitions that a signal handler ends.

use super::{Closed, Permit, SemaphoreWith};
use core::fmt;
use ulocks_core::interrupt::WaitError;
use ulocks_core::policy::InOneProcess;
use ulocks_core::time::Deadline;

/// Why an acquisition that a signal handler ends gave up. It has acquired no permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// The semaphore is [closed](SemaphoreWith::close).
    Closed,
    /// The deadline has passed.
    TimedOut,
    /// A signal handler ran while the thread slept, and the deadline has not passed.
    Interrupted,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => Closed.fmt(f),
            Self::TimedOut => WaitError::TimedOut.fmt(f),
            Self::Interrupted => WaitError::Interrupted.fmt(f),
        }
    }
}

impl core::error::Error for AcquireError {}

impl From<Closed> for AcquireError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<WaitError> for AcquireError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut,
            WaitError::Interrupted => Self::Interrupted,
        }
    }
}

impl<P: InOneProcess> SemaphoreWith<P> {
    /// Acquires a permit, or gives up when a signal handler runs while the thread sleeps, or when
    /// the semaphore is closed.
    ///
    /// It is `down_interruptible` of the Linux kernel. [`interrupt`](ulocks_core::interrupt) tells
    /// which handlers end a wait, and when.
    ///
    /// # Errors
    /// [`AcquireError::Interrupted`], [`AcquireError::Closed`].
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    ///
    /// # Examples
    /// ```
    /// use std::time::Instant;
    /// use ulocks_fair::{AcquireError, Semaphore};
    ///
    /// let slots = Semaphore::new(1);
    /// let slot = slots.acquire_interruptible()?;
    /// let late = slots.acquire_interruptible_until(Instant::now());
    /// assert_eq!(late.err(), Some(AcquireError::TimedOut));
    /// drop(slot);
    /// # Ok::<(), AcquireError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn acquire_interruptible(&self) -> Result<Permit<'_, P>, AcquireError> {
        self.acquire_many_interruptible(1)
    }

    /// As [`acquire_interruptible`](Self::acquire_interruptible), giving up also at `deadline`, an
    /// `Instant` or a [`Deadline`].
    ///
    /// # Errors
    /// [`AcquireError`]
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Permit<'_, P>, AcquireError> {
        self.acquire_many_interruptible_until(1, deadline)
    }

    /// Acquires `count` permits together, or gives up when a signal handler runs while the thread
    /// sleeps, or when the semaphore is closed.
    ///
    /// # Errors
    /// [`AcquireError::Interrupted`], [`AcquireError::Closed`].
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_many_interruptible(&self, count: u32) -> Result<Permit<'_, P>, AcquireError> {
        self.acquire_many_interruptible_until(count, Deadline::NEVER)
    }

    /// As [`acquire_many_interruptible`](Self::acquire_many_interruptible), giving up also at
    /// `deadline`, an `Instant` or a [`Deadline`].
    ///
    /// # Errors
    /// [`AcquireError`]
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_many_interruptible_until(
        &self,
        count: u32,
        deadline: impl Into<Deadline>,
    ) -> Result<Permit<'_, P>, AcquireError> {
        let deadline = deadline.into();
        match self.0.acquire_until(count, deadline.interruptible()) {
            true => Ok(Permit::new(self, count)),
            false if self.is_closed() => Err(AcquireError::Closed),
            false => Err(WaitError::at(deadline).into()),
        }
    }
}
