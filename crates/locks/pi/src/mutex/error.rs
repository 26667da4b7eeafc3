//! Why a lock was not had, or not as it should be.

use core::error::Error;
use core::fmt;
use core::mem::ManuallyDrop;
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
    /// The calling thread holds the mutex, and what it protects may be half changed: the thread
    /// that held it before ended without unlocking. Only this acquisition is told. Once its guard
    /// was taken out of the [`Orphan`] and dropped, the mutex is like any other. If the error is
    /// dropped instead, the mutex stays locked.
    OwnerDied(Orphan<G>),
    /// The word of the mutex is not what the kernel expects: something else has written over it. Or
    /// a seccomp filter forbids the call. Or an owner that was the main thread of a process has
    /// ended, nobody has waited for that process, and the waiter that is next has not run for 0.1
    /// s.
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

    /// The guard, if the mutex was acquired all the same: for a caller that repairs what it
    /// protects, or need not.
    ///
    /// # Errors
    /// All but [`OwnerDied`](Self::OwnerDied).
    ///
    /// # Safety
    /// As [`Orphan::into_guard`].
    ///
    /// # Examples
    /// ```
    /// use ulocks_pi::PiMutex;
    ///
    /// let hits = PiMutex::new(0);
    /// // SAFETY: no thread of this program leaks a guard.
    /// *hits.lock().or_else(|error| unsafe { error.recover() }).unwrap() += 1;
    /// ```
    pub unsafe fn recover(self) -> Result<G, Self> {
        match self {
            // SAFETY: the caller's promise.
            Self::OwnerDied(orphan) => Ok(unsafe { orphan.into_guard() }),
            error => Err(error),
        }
    }
}

/// The guard of a mutex whose owner before has ended without unlocking.
///
/// The owner may have leaked its guard. Then another thread may still use the reference to the data
/// that the leaked guard gave. So it is unsafe to use this guard.
///
/// Until then the calling thread holds the mutex. If this is dropped, the mutex stays locked, as
/// after [`forget`](core::mem::forget) of a guard.
///
/// ```compile_fail,E0614
/// use ulocks_pi::{PiLockError, PiMutex};
///
/// static HITS: PiMutex<u64> = PiMutex::new(0);
/// if let Err(PiLockError::OwnerDied(mut orphan)) = HITS.lock() {
///     *orphan = 0;
/// }
/// ```
#[must_use = "the mutex stays locked if this is dropped"]
pub struct Orphan<G>(ManuallyDrop<G>);

impl<G> Orphan<G> {
    pub(crate) fn new(guard: G) -> Self {
        Self(ManuallyDrop::new(guard))
    }

    /// The guard, for a caller that repairs what the mutex protects, or need not.
    ///
    /// # Safety
    /// No reference is used any more that a guard of an owner that has ended gave to the data. That
    /// is so if no thread leaks such a guard, by `mem::forget`, `MutexGuard::leak`, `Box::leak` and
    /// the like, and lets another thread have the reference. It is also so if the process of that
    /// owner has ended.
    #[must_use = "the mutex is unlocked when the guard is dropped, which is at once"]
    pub unsafe fn into_guard(self) -> G {
        ManuallyDrop::into_inner(self.0)
    }
}

impl<G> fmt::Debug for Orphan<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Orphan(..)")
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
                "the mutex is held, but its owner before ended without unlocking; take the guard, and repair \
                 what it protects",
            ),
            Self::Inconsistent => PiError::Inconsistent.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl<G> Error for PiLockError<G> {}
