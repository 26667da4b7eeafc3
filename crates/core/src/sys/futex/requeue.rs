//! Moving sleepers from one futex to another, so that they wake one by one instead of all at once.

use super::{Futex, FutexKey, RequeueError, Scope};
use crate::sys::world::kernel;

/// What a requeue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requeued {
    /// How many sleepers were woken.
    pub woken: u32,
    /// How many sleepers now sleep on the other futex, behind those that slept there before.
    pub requeued: u32,
}

impl Requeued {
    /// The kernel counts both together, and moves no sleeper before it has woken as many as it was
    /// asked to.
    pub(super) fn split(both: u32, wake: u32) -> Self {
        let woken = both.min(wake);
        Self { woken, requeued: both - woken }
    }
}

impl<S: Scope> Futex<S> {
    /// Wakes up to `wake` sleepers and moves up to `requeue` of the others to the futex named `to`,
    /// if the word holds `expected`.
    ///
    /// Comparison, waking and moving are one step for all other operations on the two futexes. A
    /// moved sleeper is woken by wake-ups of `to` that match the bits of its wait. Under Miri the
    /// call wakes the sleepers that it would move.
    ///
    /// # Errors
    /// [`RequeueError::Mismatch`] if the word holds something else. The other errors mean misuse:
    /// `to` is not mapped (noticed for shared futexes only), or either futex is in use for priority
    /// inheritance.
    ///
    /// # Examples
    /// ```
    /// use ulocks_core::futex::{Futex, Local, RequeueError, Requeued};
    ///
    /// let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(0));
    /// assert_eq!(from.cmp_requeue(1, 1, u32::MAX, to.key()), Ok(Requeued { woken: 0, requeued: 0 }));
    /// assert_eq!(from.cmp_requeue(2, 1, u32::MAX, to.key()), Err(RequeueError::Mismatch));
    /// ```
    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn cmp_requeue(
        &self,
        expected: u32,
        wake: u32,
        requeue: u32,
        to: FutexKey<S>,
    ) -> Result<Requeued, RequeueError> {
        let both = kernel::cmp_requeue(self, expected, wake, requeue, to.address(), S::PRIVATE);
        Ok(Requeued::split(both?, wake))
    }
}
