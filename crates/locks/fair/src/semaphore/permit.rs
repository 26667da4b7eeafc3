//! What an acquisition gives: permits that go back when they are dropped.

use super::SemaphoreWith;
use core::fmt;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;

/// Permits of a [`Semaphore`](crate::Semaphore), which go back to it when this is dropped.
///
/// It may be sent to another thread. If the semaphore is full when it is dropped, because others
/// released more than they had acquired, its permits are lost: there is no room for them. With the
/// feature `arc_lock` there is `OwnedPermit`, which owns a share of its semaphore.
///
/// # Examples
/// ```
/// use ulocks_fair::Semaphore;
///
/// let semaphore = Semaphore::new(5);
/// let mut three = semaphore.acquire_many(3);
/// let one = three.split(1).expect("it has three");
/// assert_eq!((three.count(), one.count()), (2, 1));
/// one.forget();
/// drop(three);
/// assert_eq!(semaphore.available_permits(), 4);
/// ```
#[must_use = "if unused the permits go back at once"]
#[clippy::has_significant_drop]
pub struct Permit<'a, P: InOneProcess = Private> {
    semaphore: &'a SemaphoreWith<P>,
    count: u32,
}

impl<'a, P: InOneProcess> Permit<'a, P> {
    #[inline]
    pub(super) fn new(semaphore: &'a SemaphoreWith<P>, count: u32) -> Self {
        Self { semaphore, count }
    }

    /// How many permits these are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The semaphore whose permits these are.
    pub fn semaphore(&self) -> &'a SemaphoreWith<P> {
        self.semaphore
    }

    /// Keeps the permits from going back: the semaphore has so many fewer, until others are
    /// released.
    #[inline]
    pub fn forget(self) {
        core::mem::forget(self);
    }

    /// Takes `count` of these permits out, as permits of their own. `None` if these are fewer.
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(Self { semaphore: self.semaphore, count })
    }

    /// Adds `other` to these permits.
    ///
    /// # Panics
    /// If `other` is of another semaphore, or if these are more than
    /// [`MAX_PERMITS`](SemaphoreWith::MAX_PERMITS) together. That cannot be unless permits
    /// were released that were not acquired.
    #[track_caller]
    pub fn merge(&mut self, other: Self) {
        assert!(
            core::ptr::eq(self.semaphore, other.semaphore),
            "permits of different semaphores cannot be merged"
        );
        // More would find no room when they go back.
        let count = self.count.checked_add(other.count);
        let count = count.filter(|&count| count <= SemaphoreWith::<P>::MAX_PERMITS);
        self.count = count.expect("permits beyond MAX_PERMITS cannot be merged: drop or split some");
        other.forget();
    }
}

impl<P: InOneProcess> Drop for Permit<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // If they find no room, they are lost, as the type says.
        _ = self.semaphore.release(self.count);
    }
}

impl<P: InOneProcess> fmt::Debug for Permit<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("count", &self.count).finish()
    }
}
