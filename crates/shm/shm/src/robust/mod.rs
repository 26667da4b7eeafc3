//! Robust locks: a thread that dies with one leaves it to the next, which is told.

/// Methods of a lock that acquire, each with its arguments beside the member and its call. Errors
/// and panics are those of the type.
macro_rules! ways {
    ($lifetime:lifetime: $(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $how:ident($($given:expr),*);
    )+) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// See [the type](Self#errors); and
        /// [`Refused::TimedOut`](crate::robust::mutex::Refused::TimedOut) if it would have to wait,
        /// or if its time is over.
        ///
        /// # Panics
        /// See [the type](Self#panics).
        pub fn $name<$lifetime>(&$lifetime self, me: &$lifetime Member<'_>, $($argument: $type),*) -> $result {
            self.$how(me, $($given),*)
        }
    )+};
}

pub mod condvar;
pub mod fair_mutex;
pub(crate) mod health;
pub mod mutex;
pub(crate) mod queue;
pub mod rwlock;
pub mod semarray;

use crate::slots::Member;
use core::convert::Infallible;
use core::ops::{Deref, DerefMut};
use mutex::{Acquired, LockError, Refused};
use ulocks_core::raw::Initial;
use ulocks_core::time::Deadline;

/// A guard of data that a death may leave dirty: of this crate, or one around it.
#[doc(hidden)]
pub trait Mends: DerefMut {
    /// The data is whole again.
    fn mended(&mut self);
}

/// What a robust lock gives, with the data repaired if a holder died: for the results of
/// [`Mutex`](mutex::Mutex) and of writers of a
/// [`RwLock`](rwlock::RwLock).
///
/// ```
/// use ulocks_shm::{Mutex, OrRepair, Region};
///
/// let region = Region::<Mutex<[u64; 2]>>::options().anonymous()?;
/// region.with_member(|me| {
///     // What both sides of the pair must be; one of them may be ahead after a death.
///     let mut pair = region.lock(me).or_repair(|pair| pair[1] = pair[0])?;
///     pair[0] += 1;
///     pair[1] += 1;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OrRepair: Sized {
    /// The guard.
    type Guard: DerefMut;

    /// The guard; if the last holder died or panicked, after `repair` has made the data whole. The
    /// data is marked as consistent then.
    ///
    /// # Errors
    /// Those of the call, but never [`LockError::OwnerDied`]: so there is no guard in it, and `?`
    /// can pass it on.
    ///
    /// # Panics
    /// If `repair` does. The lock is not recoverable then.
    fn or_repair(
        self,
        repair: impl FnOnce(&mut <Self::Guard as Deref>::Target),
    ) -> Result<Self::Guard, LockError<Infallible>>;
}

/// What a wait of a [`Condvar`](condvar::Condvar) gives, with the data repaired if a holder died.
///
/// ```
/// use ulocks_shm::{Condvar, Mutex, OrRepair, OrRepairBy, Region};
/// # #[derive(ulocks_shm::SharedSafe)]
/// # #[repr(C)]
/// # struct Root { pair: Mutex<[u64; 2]>, changed: Condvar }
///
/// let region = Region::<Root>::options().anonymous()?;
/// region.with_member(|me| {
///     let repair = |pair: &mut [u64; 2]| pair[1] = pair[0];
///     let mut pair = region.pair.lock(me).or_repair(repair)?;
///     pair[0] = 1;
///     region.changed.wait_while(&mut pair, |pair| pair[0] == 0).or_repair_by(&mut pair, repair)?;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OrRepairBy<T>: Sized {
    /// How the wait ended; if the last holder died or panicked, after `repair` has made the data of
    /// the `guard` whole. The data is marked as consistent then.
    ///
    /// # Errors
    /// Those of the wait, but never [`LockError::OwnerDied`].
    ///
    /// # Panics
    /// If `repair` does. The lock is not recoverable then.
    fn or_repair_by<G: Mends>(
        self,
        guard: &mut G,
        repair: impl FnOnce(&mut G::Target),
    ) -> Result<T, LockError<Infallible>>;
}

impl<T> OrRepairBy<T> for condvar::WaitResult<T> {
    fn or_repair_by<G: Mends>(
        self,
        guard: &mut G,
        repair: impl FnOnce(&mut G::Target),
    ) -> Result<T, LockError<Infallible>> {
        match self {
            Ok(ended) => Ok(ended),
            Err(LockError::OwnerDied(ended)) => {
                repair(guard);
                guard.mended();
                Ok(ended)
            }
            Err(LockError::NotRecoverable) => Err(LockError::NotRecoverable),
            Err(LockError::Refused(refused)) => Err(LockError::Refused(refused)),
        }
    }
}

impl<G: Mends> OrRepair for Result<G, LockError<G>> {
    type Guard = G;

    fn or_repair(self, repair: impl FnOnce(&mut G::Target)) -> Result<G, LockError<Infallible>> {
        match self {
            Ok(guard) => Ok(guard),
            Err(LockError::OwnerDied(mut guard)) => {
                repair(&mut guard);
                guard.mended();
                Ok(guard)
            }
            Err(LockError::NotRecoverable) => Err(LockError::NotRecoverable),
            Err(LockError::Refused(refused)) => Err(LockError::Refused(refused)),
        }
    }
}

/// The raw lock inside of a [`Mutex`](mutex::Mutex).
///
/// # Safety
/// Of the threads that have acquired it and not released it, all but one have died. The initial
/// value is unlocked, and its bytes are all zero. Each bit pattern is a value. It has `repr(C)`, no
/// address, and no `Drop` that does anything. Two that differ in the meaning of their bytes differ
/// in their names or sizes.
pub unsafe trait RawRobust: Initial + Send + Sync + 'static {
    /// The name of its protocol.
    const NAME: &'static str;

    /// Acquires.
    ///
    /// # Errors
    /// If the caller holds it already, or if the memory is corrupt.
    ///
    /// # Safety
    /// All threads that use this lock are members of one table of slots.
    unsafe fn lock(&self, me: &Member<'_>) -> Result<Acquired, Refused>;

    /// Acquires until `deadline`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), or if the deadline has passed.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    unsafe fn lock_until(&self, me: &Member<'_>, deadline: Deadline) -> Result<Acquired, Refused>;

    /// Acquires if that needs no wait.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), or if it would wait.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    unsafe fn try_lock(&self, me: &Member<'_>) -> Result<Acquired, Refused>;

    /// Releases.
    ///
    /// # Safety
    /// `me` holds the lock.
    unsafe fn unlock(&self, me: &Member<'_>);

    /// Whether a thread holds it, living or dead.
    fn is_locked(&self) -> bool;

    /// Unlocks it, if no thread uses it. Whether a holder has died in its critical section.
    fn reset(&self) -> bool;
}
