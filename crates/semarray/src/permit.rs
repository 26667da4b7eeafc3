//! [`Permit`]: what a set did, until it is given back.

use crate::array::InOneProcess;
use crate::raw::RawSemArray;
use crate::{Op, Set};
use core::fmt;
use core::mem;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::is_abandoned;

/// What a set of operations did to an array; dropping it gives that back.
///
/// Giving back undoes what the set changed, of each semaphore the sum, all at once, and completes
/// whoever can proceed then. It does not wait until it can proceed: a value that would fall below
/// zero becomes zero, one that would exceed the limit becomes the limit, as when System V undoes at
/// the exit of a process. After [`close`](crate::SemArrayWith::close) it does nothing.
///
/// A permit may go to another thread, and be dropped there. One that is leaked gives nothing back,
/// as one that is [kept](Self::forget).
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

    /// Keeps what the set did; nothing is given back.
    pub fn forget(mut self) {
        // The operations may lie on the heap: they are dropped with the permit, and do nothing.
        drop(mem::take(&mut self.set));
    }
}

impl<P: InOneProcess> Drop for Permit<'_, P> {
    fn drop(&mut self) {
        if !self.set.is_empty() && !is_abandoned() {
            // The operations are the array's, so it is closed if it refuses.
            _ = self.array.give_back(&self.set);
        }
    }
}

impl<P: InOneProcess> fmt::Debug for Permit<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&&self.set[..]).finish()
    }
}
