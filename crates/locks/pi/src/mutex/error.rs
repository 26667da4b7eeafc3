//! Why a lock was not had, or not as it should be.

use core::error::Error;
use core::fmt;
use ulocks_core::futex::PiError;

/// What an acquisition has to tell. `G` is the guard.
#[non_exhaustive]
pub enum PiLockError<G> {
    /// The calling thread holds the mutex already, or the wait would close a circle of threads that
    /// wait for one another. The caller does not hold the mutex. It should release what it
    /// holds, and begin again.
    Deadlock,
    /// The thread that holds the mutex ended without unlocking, and no thread waited for it then.
    /// The mutex stays locked for ever; what it protects can be reached by
    /// [`PiMutexWith::get_mut`](crate::PiMutexWith::get_mut).
    OwnerGone,
    /// The mutex is held by this guard, and what it protects may be half changed: the thread that
    /// held it before ended without unlocking. Only this acquisition is told; once the guard is
    /// dropped, the mutex is like any other.
    OwnerDied(G),
    /// The word of the mutex is not what the kernel expects: something else has written over it.
    Inconsistent,
    /// The kernel refused for another reason: no memory, no support for priority inheritance, the
    /// mapping gone.
    Refused(PiError),
}

impl<G> PiLockError<G> {
    pub(crate) fn of(error: PiError) -> Self {
        match error {
            PiError::Deadlock => Self::Deadlock,
            PiError::OwnerGone => Self::OwnerGone,
            PiError::Inconsistent | PiError::NotPermitted => Self::Inconsistent,
            error => Self::Refused(error),
        }
    }

    /// The guard, if the mutex was acquired all the same: for a caller that has repaired what it
    /// protects, or need not.
    ///
    /// # Errors
    /// All but [`OwnerDied`](Self::OwnerDied).
    ///
    /// # Examples
    /// ```
    /// use ulocks_pi::{PiLockError, PiMutex};
    ///
    /// let hits = PiMutex::new(0);
    /// *hits.lock().or_else(PiLockError::recover).unwrap() += 1;
    /// ```
    pub fn recover(self) -> Result<G, Self> {
        match self {
            Self::OwnerDied(guard) => Ok(guard),
            error => Err(error),
        }
    }
}

impl<G> fmt::Debug for PiLockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("Deadlock"),
            Self::OwnerGone => f.write_str("OwnerGone"),
            Self::OwnerDied(_) => f.write_str("OwnerDied(..)"),
            Self::Inconsistent => f.write_str("Inconsistent"),
            Self::Refused(error) => f.debug_tuple("Refused").field(error).finish(),
        }
    }
}

impl<G> fmt::Display for PiLockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => PiError::Deadlock.fmt(f),
            Self::OwnerGone => f.write_str("the owner of the mutex ended without unlocking; it stays locked"),
            Self::OwnerDied(_) => f.write_str(
                "the mutex is held, but its owner before ended without unlocking; repair what it protects",
            ),
            Self::Inconsistent => PiError::Inconsistent.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl<G> Error for PiLockError<G> {}
