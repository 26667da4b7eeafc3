//! [`Semaphore`]: one semaphore.

use super::{PermitResult, SemArray, SemArrayPermit, SemError};
use crate::robust::queue::Patience;
use crate::slots::Member;
use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};
use ulocks_semarray::{Op, Set};

/// A counting semaphore between processes: the permits of a thread that dies come back.
///
/// A [`SemArray`] of one semaphore; its fairness and blocking are the array's. All zero has
/// no permits.
///
/// # Errors
/// As [`SemArray`]. [`SemError::Limit`] for more than 32,767 permits.
///
/// # Panics
/// As [`SemArray`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_shm::{Region, Semaphore};
///
/// let region = Region::<Semaphore>::options().anonymous()?;
/// region.with_member(|me| {
///     region.add_permits(me, 2)?;
///     let permit = region.acquire(me)?;
///     assert_eq!(region.available_permits(), 1);
///     let other = region.try_acquire(me)?;
///     assert!(region.acquire_for(me, Duration::from_millis(1)).is_err());
///     drop((permit, other));
///     assert_eq!(region.available_permits(), 2);
///     Ok::<_, ulocks_shm::SemError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore<const SLOTS: usize = 64, P: Policy<Scope = futex::Global> = Shared>(
    pub(crate) SemArray<1, SLOTS, 1, P>,
);

/// Permits of a [`Semaphore`].
pub type SemaphorePermit<'a, const SLOTS: usize = 64, P = Shared> = SemArrayPermit<'a, 1, SLOTS, 1, P>;

impl<const SLOTS: usize, P: Policy<Scope = futex::Global>> Semaphore<SLOTS, P> {
    /// A semaphore with so many permits.
    ///
    /// # Panics
    /// If there are more than 32,767.
    #[must_use]
    pub fn new(permits: u32) -> Self {
        Self(SemArray::new([permits]))
    }

    ways! { 'a:
        /// Takes one permit.
        acquire() -> PermitResult<'a, 1, SLOTS, 1, P>, permits(1, Patience::Forever);

        /// Takes one permit if there is one.
        try_acquire() -> PermitResult<'a, 1, SLOTS, 1, P>, permits(1, Patience::Never);

        /// Takes one permit within `timeout`.
        acquire_for(timeout: Duration) -> PermitResult<'a, 1, SLOTS, 1, P>,
            permits(1, Patience::within(timeout));

        /// Takes one permit until `deadline`.
        acquire_until(deadline: Deadline) -> PermitResult<'a, 1, SLOTS, 1, P>,
            permits(1, Patience::Until(deadline));

        /// Takes `number` permits, all at once.
        acquire_many(number: u32) -> PermitResult<'a, 1, SLOTS, 1, P>, permits(number, Patience::Forever);

        /// Takes `number` permits if they are there.
        try_acquire_many(number: u32) -> PermitResult<'a, 1, SLOTS, 1, P>, permits(number, Patience::Never);

        /// Takes `number` permits within `timeout`.
        acquire_many_for(number: u32, timeout: Duration) -> PermitResult<'a, 1, SLOTS, 1, P>,
            permits(number, Patience::within(timeout));

        /// Takes `number` permits until `deadline`.
        acquire_many_until(number: u32, deadline: Deadline) -> PermitResult<'a, 1, SLOTS, 1, P>,
            permits(number, Patience::Until(deadline));
    }

    fn permits<'a>(
        &'a self,
        me: &'a Member<'_>,
        number: u32,
        patience: Patience,
    ) -> PermitResult<'a, 1, SLOTS, 1, P> {
        self.0.permit(me, Set::new().sub(0, number), patience)
    }

    /// Takes `number` permits that come back when the thread dies, and notes them in the member:
    /// before `deadline`, or without one as long as it takes. Not through a guard, for programs in
    /// C, which give back other numbers than they took.
    ///
    /// # Errors
    /// As [`acquire_many`](Self::acquire_many), or if the permits did not come.
    ///
    /// # Panics
    /// See [`SemArray`].
    #[doc(hidden)]
    pub fn take(&self, me: &Member<'_>, number: u32, deadline: Option<Deadline>) -> Result<(), SemError> {
        self.take_with(me, number, deadline.map_or(Patience::Forever, Patience::Until))
    }

    /// As [`take`](Self::take), if the permits are there.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Panics
    /// See [`SemArray`].
    #[doc(hidden)]
    pub fn try_take(&self, me: &Member<'_>, number: u32) -> Result<(), SemError> {
        self.take_with(me, number, Patience::Never)
    }

    fn take_with(&self, me: &Member<'_>, number: u32, patience: Patience) -> Result<(), SemError> {
        self.0.perform(me, &[Op::sub(0, number)], true, patience)?;
        me.count(number as i32);
        Ok(())
    }

    /// Gives back `number` of the permits that the thread took by [`take`](Self::take). Returns
    /// whether it had so many; if not, nothing has changed.
    ///
    /// # Panics
    /// See [`SemArray`].
    #[doc(hidden)]
    pub fn give_back(&self, me: &Member<'_>, number: u32) -> bool {
        me.check_region(self);
        let has_them = i64::from(number) <= self.0.0.owed(me, 0);
        if has_them {
            // SAFETY: the semaphore lies in the member's region, and all members of that have one
            // table.
            unsafe { self.0.0.give_back(me, &[Op::sub(0, number)], None) };
            me.count(-(number as i32));
        }
        has_them
    }

    /// Adds permits. They stay when the thread dies. If it dies while it adds, a waiter may learn
    /// of them 200 ms later.
    ///
    /// # Errors
    /// [`SemError::Limit`] if there would be more than 32,767.
    ///
    /// # Panics
    /// See [`SemArray`].
    pub fn add_permits(&self, me: &Member<'_>, number: u32) -> Result<(), SemError> {
        self.0.apply(me, &[Op::add(0, number)])
    }

    /// How many permits are there, at the moment of the look.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        self.0.value(0).unwrap_or_default()
    }
}
