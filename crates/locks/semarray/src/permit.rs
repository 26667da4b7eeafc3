//! [`Permit`]: a set that was performed, and that is given back when the permit is dropped.

use crate::raw::RawSemArray;
use crate::{Op, Set};
use core::fmt;
use core::mem;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::is_abandoned;

/// A set of operations that was performed; dropping the permit gives it back.
///
/// To give back is to undo what the set changed, at one moment: for each semaphore the sum of its
/// operations. Sets that can proceed then are completed. It never waits: a value that would fall
/// below zero becomes zero, and one that would exceed the limit becomes the limit. System V does
/// the same when a process exits. After [`close`](crate::RawSemArray::close) a permit gives
/// nothing back.
///
/// A permit may go to another thread, and be dropped there. A permit that is leaked gives nothing
/// back, like one that is [forgotten](Self::forget).
///
/// # Examples
/// ```
/// use ulocks_semarray::{Permit, SemArray, Set};
///
/// struct Connection<'a> {
///     _slots: Permit<'a>,
/// }
///
/// let free = SemArray::with_values([2, 8]);
/// let one = Connection { _slots: free.acquire(Set::new().sub(0, 1).sub(1, 4))? };
/// assert_eq!(free.values(), [1, 4]);
/// drop(one);
/// assert_eq!(free.values(), [2, 8]);
/// free.acquire(Set::new().sub(1, 3))?.forget(); // for good
/// assert_eq!(free.values(), [2, 5]);
/// # Ok::<_, ulocks_semarray::Error>(())
/// ```
#[must_use = "a permit that is dropped at once gives back at once"]
#[clippy::has_significant_drop]
pub struct Permit<'a, P: InOneProcess = Private<NoSpin>> {
    array: &'a RawSemArray<P>,
    set: Set,
}

impl<'a, P: InOneProcess> Permit<'a, P> {
    pub(crate) fn new(array: &'a RawSemArray<P>, set: Set) -> Self {
        Self { array, set }
    }

    /// The operations that were performed.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.set
    }

    /// Drops the permit without giving anything back.
    pub fn forget(mut self) {
        // The operations may be allocated. An empty set gives nothing back.
        drop(mem::take(&mut self.set));
    }
}

impl<P: InOneProcess> Drop for Permit<'_, P> {
    fn drop(&mut self) {
        if !self.set.is_empty() && !is_abandoned() {
            // The operations fit the array, so this fails only if the array is closed.
            _ = self.array.give_back(&self.set);
        }
    }
}

impl<P: InOneProcess> fmt::Debug for Permit<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&&self.set[..]).finish()
    }
}
