//! [`SemArray`] and [`Semaphore`]: permits that come back when a process dies.
//!
//! A permit gives access to no memory. So a permit that is leaked, and comes back at the end of its
//! thread, breaks no promise that the compiler relies on.

pub(crate) mod raw;
mod request;
mod semaphore;

pub use semaphore::{Semaphore, SemaphorePermit};

use crate::robust::mutex::Refused;
use crate::robust::queue::Patience;
use crate::slots::Member;
use core::fmt;
use core::time::Duration;
use raw::RawSemArray;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};
use ulocks_semarray::{Op, Set};

/// An array of `SEMS` semaphores between processes, with sets of operations that are performed
/// whole or not at all. What a thread holds a permit for comes back when the thread dies.
///
/// This is System V's `semop` with `SEM_UNDO`, without a system call when no thread waits. Values
/// are at most 32,767. A set has at most `OPS` operations, and `OPS` is one at least. Each of
/// `SLOTS` participants has room of its own in the array. A region that has more participants is
/// refused when it is made.
///
/// # Fairness
/// An arriving set is tried first. Of the sets that wait, the oldest that can proceed is performed.
/// So a set of many operations may wait as long as smaller ones keep coming, as in System V.
///
/// # Blocking
/// Each operation takes a lock of the queue, for a short time. A set that must wait sleeps in the
/// kernel (`futex_wait`, `futex_waitv`), the first one after some microseconds, until another
/// thread performs it, or until a thread dies that it watches. It looks again each 200 ms.
///
/// # Errors
/// [`SemError`] says what was wrong, or why a set failed. Then no semaphore has changed.
///
/// # Panics
/// If the member is not of this array's region, or is that of the process's parent. A permit that
/// is dropped in a child of `fork` panics too.
///
/// # Process-shared
/// That is what it is for. What comes back is counted for each thread that has joined, not for each
/// process as in System V. After a reset of the region all permits have come back; values are kept.
///
/// # Signals and forks
/// A signal handler must not use it. A signal does not interrupt a wait. A child of fork has no
/// permits.
///
/// # Sources
/// semop(2); ipc/sem.c in the kernel, for the order of evaluation. The journal and the queue are
/// this project's.
///
/// # Examples
/// ```
/// use ulocks_semarray::{Op, Set};
/// use ulocks_shm::{Region, SemArray};
///
/// let region = Region::<SemArray<2>>::options().anonymous()?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         region.with_member(|me| {
///             region.apply(me, &[Op::add(0, 3), Op::add(1, 1)]).unwrap();
///             // The thread leaves while it has one of each, as if it died.
///             std::mem::forget(region.acquire(me, Set::new().sub(0, 1).sub(1, 1)).unwrap());
///             assert_eq!(region.values(), [2, 0]);
///         })
///     });
/// });
/// region.with_member(|me| {
///     let permit = region.acquire(me, Set::new().sub(1, 1)).unwrap(); // It came back.
///     assert_eq!(region.values(), [3, 0]);
///     drop(permit);
///     assert_eq!(region.values(), [3, 1]);
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct SemArray<
    const SEMS: usize,
    const SLOTS: usize = 64,
    const OPS: usize = 8,
    P: Policy<Scope = futex::Global> = Shared,
>(RawSemArray<SEMS, SLOTS, OPS, P>);

/// Why a set was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SemError {
    /// The set has no operation.
    NoOperation,
    /// The set has more operations than the array has room for.
    TooManyOperations {
        /// How many it has.
        given: usize,
        /// How many are possible: `OPS`.
        most: usize,
    },
    /// There is no such semaphore.
    NoSuchSemaphore {
        /// The index that was given.
        index: usize,
        /// The number of semaphores.
        len: usize,
    },
    /// A value would be greater than 32,767.
    Limit,
    /// An operation that does not wait would have to.
    WouldBlock,
    /// The set had to wait, or the array cannot be used.
    Refused(Refused),
}

/// What an acquisition gives.
pub type PermitResult<'a, const SEMS: usize, const SLOTS: usize, const OPS: usize, P> =
    Result<SemArrayPermit<'a, SEMS, SLOTS, OPS, P>, SemError>;

impl From<Refused> for SemError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl fmt::Display for SemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOperation => f.write_str("the set has no operation"),
            Self::TooManyOperations { given, most } => write!(
                f,
                "the set has {given} operations, but the array has room for {most}: give it a greater `OPS`"
            ),
            Self::NoSuchSemaphore { index, len } => {
                write!(f, "there is no semaphore {index}: the array has {len}")
            }
            Self::Limit => f.write_str("a value would be greater than 32,767"),
            Self::WouldBlock => f.write_str("an operation that does not wait would have to wait"),
            Self::Refused(Refused::TimedOut) => f.write_str("the set could not be performed in time"),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl core::error::Error for SemError {}

impl<const SEMS: usize, const SLOTS: usize, const OPS: usize, P: Policy<Scope = futex::Global>>
    SemArray<SEMS, SLOTS, OPS, P>
{
    /// An array with these values.
    ///
    /// # Panics
    /// If a value is greater than 32,767.
    #[must_use]
    pub fn new(values: [u32; SEMS]) -> Self {
        assert!(values.iter().all(|&value| i64::from(value) <= raw::LIMIT), "a value exceeds 32,767");
        Self(RawSemArray::new(values))
    }

    ways! { 'a:
        /// Performs a set. Its effects stay when the thread dies.
        apply(ops: &[Op]) -> Result<(), SemError>, perform(ops, false, Patience::Forever);

        /// Performs a set if that needs no wait.
        try_apply(ops: &[Op]) -> Result<(), SemError>, perform(ops, false, Patience::Never);

        /// Performs a set within `timeout`.
        apply_for(ops: &[Op], timeout: Duration) -> Result<(), SemError>,
            perform(ops, false, Patience::within(timeout));

        /// Performs a set, and takes it back when the permit is dropped or the thread dies.
        acquire(set: impl Into<Set>) -> PermitResult<'a, SEMS, SLOTS, OPS, P>,
            permit(set.into(), Patience::Forever);

        /// As [`acquire`](Self::acquire), if that needs no wait.
        try_acquire(set: impl Into<Set>) -> PermitResult<'a, SEMS, SLOTS, OPS, P>,
            permit(set.into(), Patience::Never);

        /// As [`acquire`](Self::acquire), within `timeout`.
        acquire_for(set: impl Into<Set>, timeout: Duration) -> PermitResult<'a, SEMS, SLOTS, OPS, P>,
            permit(set.into(), Patience::within(timeout));

        /// As [`acquire`](Self::acquire), until `deadline`.
        acquire_until(set: impl Into<Set>, deadline: Deadline) -> PermitResult<'a, SEMS, SLOTS, OPS, P>,
            permit(set.into(), Patience::Until(deadline));
    }

    /// Sets a semaphore, as System V's `SETVAL`: permits that were taken of it do not come back
    /// when their threads die.
    ///
    /// # Errors
    /// If there is no such semaphore, or the value is greater than 32,767.
    ///
    /// # Panics
    /// As [`apply`](Self::apply).
    pub fn set(&self, me: &Member<'_>, index: usize, value: u32) -> Result<(), SemError> {
        me.check_region(self);
        // SAFETY: the array lies in the member's region, and all members of that have one table.
        unsafe { self.0.set(me, index, value) }
    }

    /// Gives back what dead threads have taken. A thread that waits does that, and one that would
    /// have to wait; so this is for a look at the values.
    ///
    /// # Errors
    /// [`SemError::Refused`] if the array cannot be used.
    ///
    /// # Panics
    /// As [`apply`](Self::apply).
    pub fn reclaim(&self, me: &Member<'_>) -> Result<(), SemError> {
        me.check_region(self);
        // SAFETY: the array lies in the member's region, and all members of that have one table.
        unsafe { self.0.reclaim(me) }
    }

    /// The value of semaphore `index` at the moment of the look, if there is such a semaphore.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<u32> {
        self.0.value(index)
    }

    /// The values, each at the moment of its look.
    #[must_use]
    pub fn values(&self) -> [u32; SEMS] {
        core::array::from_fn(|index| self.0.value(index).unwrap_or_default())
    }

    /// The process that operated on semaphore `index` last, also by its death: System V's `GETPID`.
    /// It is 0 if none has, and `None` if there is no such semaphore. It is the number that the
    /// process has for itself, so in another PID namespace it means another process.
    #[must_use]
    pub fn last_process(&self, index: usize) -> Option<u32> {
        self.0.last_process(index)
    }

    /// How many threads wait, at the moment of the look.
    #[must_use]
    pub fn waiters(&self, me: &Member<'_>) -> usize {
        self.0.waiters(me)
    }

    fn perform(&self, me: &Member<'_>, ops: &[Op], undo: bool, patience: Patience) -> Result<(), SemError> {
        me.check_region(self);
        // SAFETY: the array lies in the member's region, and all members of that have one table.
        unsafe { self.0.apply(me, ops, undo, patience) }
    }

    fn permit<'a>(
        &'a self,
        me: &'a Member<'_>,
        set: Set,
        patience: Patience,
    ) -> PermitResult<'a, SEMS, SLOTS, OPS, P> {
        self.perform(me, &set, true, patience)?;
        me.count(1);
        Ok(SemArrayPermit { array: self, me, set, sets: self.0.sets(me) })
    }

    /// Gives all permits back, if no thread uses the array.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_array(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { &*this }.0.reset();
    }
}

/// What a set took from a [`SemArray`]: it comes back when this is dropped, or when the
/// thread dies.
#[derive(Debug)]
#[must_use = "dropped at once, it gives back what the set took"]
pub struct SemArrayPermit<
    'a,
    const SEMS: usize,
    const SLOTS: usize = 64,
    const OPS: usize = 8,
    P: Policy<Scope = futex::Global> = Shared,
> {
    array: &'a SemArray<SEMS, SLOTS, OPS, P>,
    me: &'a Member<'a>,
    set: Set,
    /// How often a semaphore had been set before.
    sets: u32,
}

impl<const SEMS: usize, const SLOTS: usize, const OPS: usize, P: Policy<Scope = futex::Global>> Drop
    for SemArrayPermit<'_, SEMS, SLOTS, OPS, P>
{
    fn drop(&mut self) {
        if !ulocks_core::sync::is_abandoned() {
            // SAFETY: the permit's array and member belong together, as when it was taken.
            unsafe { self.array.0.give_back(self.me, &self.set, Some(self.sets)) };
            self.me.count(-1);
        }
    }
}
