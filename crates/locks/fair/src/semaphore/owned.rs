//! Permits that own a share of their semaphore, so that they can go where a borrow cannot.

use super::{Closed, RawAcquireAsync, SemaphoreWith};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::time::Deadline;

/// A [`Permit`](crate::Permit) that owns a share of its semaphore: for a thread that is not scoped,
/// or a struct without a lifetime.
///
/// Its permits go back when it is dropped. If the semaphore is full then, they are lost, as those
/// of a [`Permit`](crate::Permit).
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ulocks_fair::{OwnedPermit, Semaphore};
///
/// struct Connection {
///     number: u32,
///     _slot: OwnedPermit,
/// }
///
/// let slots = Arc::new(Semaphore::new(2));
/// let connections: Vec<_> = (0..2)
///     .map(|number| Connection { number, _slot: slots.clone().acquire_owned() })
///     .collect();
/// assert!(slots.clone().try_acquire_owned().is_none());
///
/// let served = std::thread::spawn(move || connections.iter().map(|it| it.number).sum::<u32>());
/// assert_eq!(served.join().unwrap(), 1);
/// assert_eq!(slots.available_permits(), 2);
/// ```
#[must_use = "if unused the permits go back at once"]
#[clippy::has_significant_drop]
pub struct OwnedPermit<P: InOneProcess = Private> {
    semaphore: Arc<SemaphoreWith<P>>,
    count: u32,
}

/// Permits that own a share of the semaphore. Each method waits, fails and panics as the one
/// without `owned` in its name does.
impl<P: InOneProcess> SemaphoreWith<P> {
    /// [`acquire`](Self::acquire), for an owned permit.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_owned(self: Arc<Self>) -> OwnedPermit<P> {
        self.acquire_many_owned(1)
    }

    /// [`acquire_many`](Self::acquire_many), for an owned permit.
    ///
    /// # Panics
    /// As [`acquire_many`](Self::acquire_many).
    #[track_caller]
    pub fn acquire_many_owned(self: Arc<Self>, count: u32) -> OwnedPermit<P> {
        self.0.acquire(count);
        OwnedPermit { semaphore: self, count }
    }

    /// [`acquire_unless_closed`](Self::acquire_unless_closed), for an owned permit.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the thread waits.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    pub fn acquire_owned_unless_closed(self: Arc<Self>) -> Result<OwnedPermit<P>, Closed> {
        self.acquire_many_owned_unless_closed(1)
    }

    /// [`acquire_many_unless_closed`](Self::acquire_many_unless_closed), for an owned permit.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the thread waits.
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    pub fn acquire_many_owned_unless_closed(self: Arc<Self>, count: u32) -> Result<OwnedPermit<P>, Closed> {
        self.0.acquire_unless_closed(count)?;
        Ok(OwnedPermit { semaphore: self, count })
    }

    /// [`acquire_async`](Self::acquire_async), for an owned permit.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the task waits.
    ///
    /// # Panics
    /// As [`acquire_async`](Self::acquire_async).
    pub fn acquire_owned_async(self: Arc<Self>) -> AcquireOwnedAsync<P> {
        self.acquire_many_owned_async(1)
    }

    /// [`acquire_many_async`](Self::acquire_many_async), for an owned permit.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the task waits.
    ///
    /// # Panics
    /// As [`acquire_many_async`](Self::acquire_many_async).
    pub fn acquire_many_owned_async(self: Arc<Self>, count: u32) -> AcquireOwnedAsync<P> {
        // SAFETY: the share lives as long as the future, and is dropped after it; what it owns does
        // not move.
        let semaphore: &'static Self = unsafe { &*Arc::as_ptr(&self) };
        AcquireOwnedAsync { raw: semaphore.0.acquire_async(count), semaphore: self, count }
    }

    /// [`try_acquire`](Self::try_acquire), for an owned permit.
    pub fn try_acquire_owned(self: Arc<Self>) -> Option<OwnedPermit<P>> {
        self.try_acquire_many_owned(1)
    }

    /// [`try_acquire_many`](Self::try_acquire_many), for an owned permit.
    pub fn try_acquire_many_owned(self: Arc<Self>, count: u32) -> Option<OwnedPermit<P>> {
        self.0.try_acquire(count).then(|| OwnedPermit { semaphore: self, count })
    }

    /// [`try_acquire_for`](Self::try_acquire_for), for an owned permit.
    ///
    /// # Panics
    /// As [`try_acquire_for`](Self::try_acquire_for).
    pub fn try_acquire_owned_for(self: Arc<Self>, timeout: Duration) -> Option<OwnedPermit<P>> {
        self.try_acquire_many_owned_for(1, timeout)
    }

    /// [`try_acquire_until`](Self::try_acquire_until), for an owned permit.
    ///
    /// # Panics
    /// As [`try_acquire_until`](Self::try_acquire_until).
    pub fn try_acquire_owned_until(self: Arc<Self>, deadline: impl Into<Deadline>) -> Option<OwnedPermit<P>> {
        self.try_acquire_many_owned_until(1, deadline)
    }

    /// [`try_acquire_many_for`](Self::try_acquire_many_for), for an owned permit.
    ///
    /// # Panics
    /// As [`try_acquire_many_for`](Self::try_acquire_many_for).
    pub fn try_acquire_many_owned_for(
        self: Arc<Self>,
        count: u32,
        timeout: Duration,
    ) -> Option<OwnedPermit<P>> {
        self.try_acquire_many_for(count, timeout)?.forget();
        Some(OwnedPermit { semaphore: self, count })
    }

    /// [`try_acquire_many_until`](Self::try_acquire_many_until), for an owned permit.
    ///
    /// # Panics
    /// As [`try_acquire_many_until`](Self::try_acquire_many_until).
    pub fn try_acquire_many_owned_until(
        self: Arc<Self>,
        count: u32,
        deadline: impl Into<Deadline>,
    ) -> Option<OwnedPermit<P>> {
        self.try_acquire_many_until(count, deadline)?.forget();
        Some(OwnedPermit { semaphore: self, count })
    }
}

/// The future of [`acquire_owned_async`](SemaphoreWith::acquire_owned_async) and
/// [`acquire_many_owned_async`](SemaphoreWith::acquire_many_owned_async).
#[must_use = "a future does nothing unless it is polled"]
pub struct AcquireOwnedAsync<P: InOneProcess> {
    // Dropped before the semaphore.
    raw: RawAcquireAsync<'static, P>,
    semaphore: Arc<SemaphoreWith<P>>,
    count: u32,
}

impl<P: InOneProcess> Future for AcquireOwnedAsync<P> {
    type Output = Result<OwnedPermit<P>, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (semaphore, count) = (Arc::clone(&self.semaphore), self.count);
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let raw = unsafe { self.map_unchecked_mut(|this| &mut this.raw) };
        raw.poll(context).map_ok(|()| OwnedPermit { semaphore, count })
    }
}

impl<P: InOneProcess> fmt::Debug for AcquireOwnedAsync<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireOwnedAsync").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<P: InOneProcess> OwnedPermit<P> {
    /// How many permits these are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The semaphore whose permits these are.
    pub fn semaphore(&self) -> &Arc<SemaphoreWith<P>> {
        &self.semaphore
    }

    /// Keeps the permits from going back: the semaphore has so many fewer, until others are
    /// released. The share of the semaphore is given up.
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Takes `count` of these permits out, as permits of their own. `None` if these are fewer.
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(Self { semaphore: Arc::clone(&self.semaphore), count })
    }

    /// Adds `other` to these permits.
    ///
    /// # Panics
    /// If `other` is of another semaphore.
    pub fn merge(&mut self, other: Self) {
        assert!(
            Arc::ptr_eq(&self.semaphore, &other.semaphore),
            "permits of different semaphores cannot be merged"
        );
        // No overflow, as in `Permit::merge`.
        self.count = self.count.checked_add(other.count).expect("fewer than 2^32 permits");
        other.forget();
    }
}

impl<P: InOneProcess> Drop for OwnedPermit<P> {
    fn drop(&mut self) {
        if self.count > 0 {
            // If they find no room, they are lost, as the type says.
            _ = self.semaphore.release(self.count);
        }
    }
}

impl<P: InOneProcess> fmt::Debug for OwnedPermit<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("count", &self.count).finish()
    }
}
