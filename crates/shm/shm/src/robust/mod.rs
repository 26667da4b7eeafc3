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
use mutex::{Acquired, Refused};
use ulocks_core::raw::Initial;
use ulocks_core::time::Deadline;

/// The raw lock inside of a [`RobustMutex`](mutex::RobustMutex).
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
