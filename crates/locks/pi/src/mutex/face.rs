//! [`RawPi`]: what the typed mutex and the condition variable need of the mutex inside.

use super::raw::{RawPiMutex, Taken};
use crate::condvar::RawPiCondvar;
use ulocks_core::Policy;
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::PiError;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;

/// A priority-inheriting mutex without data: [`RawPiMutex`], or a checker around it.
///
/// # Safety
/// If `acquire`, `try_acquire` or `wait` returns what was taken, that is an acquisition as those of
/// [`RawMutex`] are; if that is [`Taken::OwnerDied`], beside the one of the owner that has ended.
/// If `wait` returns an error, the caller does not hold the mutex. What is safe to call either
/// acquires the mutex or leaves it as it is.
pub unsafe trait RawPi: RawMutex<Token = ()> {
    /// That of the mutex inside.
    type Policy: Policy;

    /// The mutex inside.
    fn pi(&self) -> &RawPiMutex<Self::Policy>;

    /// As [`RawPiMutex::acquire`].
    ///
    /// # Errors
    /// As [`RawPiMutex::acquire`].
    fn acquire(&self, deadline: Option<Deadline>) -> Result<Taken, PiError>;

    /// As [`RawPiMutex::try_acquire`].
    ///
    /// # Errors
    /// As [`RawPiMutex::try_acquire`].
    fn try_acquire(&self) -> Result<Option<Taken>, PiError>;

    /// As [`RawPiCondvar::wait`] with the mutex inside.
    ///
    /// # Errors
    /// As [`RawPiCondvar::wait`].
    ///
    /// # Safety
    /// The caller holds the mutex.
    unsafe fn wait(
        &self,
        condvar: &RawPiCondvar<Self::Policy>,
        deadline: Option<Deadline>,
    ) -> Result<(Taken, Wakeup), PiError>;
}

// SAFETY: the acquisitions are those of the mutex, and `RawPiCondvar::wait` says the same of its
// own. The release that is not unsafe is not public.
unsafe impl<P: Policy> RawPi for RawPiMutex<P> {
    type Policy = P;

    #[inline]
    fn pi(&self) -> &Self {
        self
    }

    #[inline]
    fn acquire(&self, deadline: Option<Deadline>) -> Result<Taken, PiError> {
        self.acquire(deadline)
    }

    #[inline]
    fn try_acquire(&self) -> Result<Option<Taken>, PiError> {
        self.try_acquire()
    }

    #[inline]
    unsafe fn wait(
        &self,
        condvar: &RawPiCondvar<P>,
        deadline: Option<Deadline>,
    ) -> Result<(Taken, Wakeup), PiError> {
        // SAFETY: the caller's promise.
        unsafe { condvar.wait(self, deadline) }
    }
}
