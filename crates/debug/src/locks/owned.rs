//! Permits that own a share of their checked semaphore.
//!
//! `ulocks_fair::OwnedPermit` shares a `Semaphore`, and the one in a [`CheckedSemaphore`] is no
//! `Arc` of its own. So this is another type with the same methods.

use crate::locks::semaphore::CheckedSemaphore;
use core::convert::identity;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::time::Deadline;
use ulocks_fair::{AcquireAsync, Closed, Permit, Semaphore};

/// A [`Permit`] that owns a share of its [`CheckedSemaphore`], for what a borrow cannot be in.
///
/// It has the methods of [`ulocks_fair::OwnedPermit`], and its permits go back as those do.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ulocks_debug::{OwnedPermit, Semaphore};
///
/// let slots = Arc::new(Semaphore::new(1));
/// let slot: OwnedPermit = slots.clone().acquire_owned();
/// assert!(slots.clone().try_acquire_owned().is_none());
/// std::thread::spawn(|| drop(slot)).join().unwrap();
/// assert_eq!(slots.available_permits(), 1);
/// ```
#[must_use = "if unused the permits go back at once"]
#[clippy::has_significant_drop]
pub struct CheckedOwnedPermit {
    semaphore: Arc<CheckedSemaphore>,
    count: u32,
}

impl CheckedOwnedPermit {
    /// Owns what `permit` is of `semaphore`.
    fn of(semaphore: Arc<CheckedSemaphore>, permit: Permit<'_>) -> Self {
        Self { semaphore, count: taken(permit) }
    }

    /// How many permits these are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The semaphore whose permits these are.
    pub fn semaphore(&self) -> &Arc<CheckedSemaphore> {
        &self.semaphore
    }

    /// Keeps the permits from going back. The share of the semaphore is given up.
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
        self.count = self.count.checked_add(other.count).expect("fewer than 2^32 permits");
        other.forget();
    }
}

impl Drop for CheckedOwnedPermit {
    fn drop(&mut self) {
        // If they find no room, they are lost, as those of a `Permit`.
        _ = self.semaphore.release(self.count);
    }
}

impl fmt::Debug for CheckedOwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("count", &self.count).finish()
    }
}

/// How many permits `permit` is; they do not go back by it.
fn taken(permit: Permit<'_>) -> u32 {
    let count = permit.count();
    permit.forget();
    count
}

/// `name: plain(arguments) -> result, what makes the result of a permit, ? if it may fail`.
macro_rules! owned {
    ($($name:ident: $plain:ident($($arg:ident: $of:ty),*)
        -> $result:ty, $makes:path $(, $fails:tt)?;)*) => {
        /// Permits that own a share of the semaphore. Each method waits, fails and panics as the
        /// one without `owned` in its name does.
        impl CheckedSemaphore {$(
            #[doc = concat!("[`", stringify!($plain), "`](ulocks_fair::SemaphoreWith::",
                stringify!($plain), "), for an owned permit.")]
            #[track_caller]
            pub fn $name(self: Arc<Self>, $($arg: $of),*) -> $result {
                let count = taken(self.$plain($($arg),*)$($fails)?);
                $makes(CheckedOwnedPermit { semaphore: self, count })
            }
        )*}
    };
}

owned! {
    acquire_owned: acquire() -> CheckedOwnedPermit, identity;
    acquire_many_owned: acquire_many(count: u32) -> CheckedOwnedPermit, identity;
    acquire_owned_unless_closed: acquire_unless_closed() -> Result<CheckedOwnedPermit, Closed>, Ok, ?;
    acquire_many_owned_unless_closed: acquire_many_unless_closed(count: u32)
        -> Result<CheckedOwnedPermit, Closed>, Ok, ?;
    try_acquire_owned: try_acquire() -> Option<CheckedOwnedPermit>, Some, ?;
    try_acquire_many_owned: try_acquire_many(count: u32) -> Option<CheckedOwnedPermit>, Some, ?;
    try_acquire_owned_for: try_acquire_for(timeout: Duration) -> Option<CheckedOwnedPermit>, Some, ?;
    try_acquire_owned_until: try_acquire_until(deadline: impl Into<Deadline>)
        -> Option<CheckedOwnedPermit>, Some, ?;
    try_acquire_many_owned_for: try_acquire_many_for(count: u32, timeout: Duration)
        -> Option<CheckedOwnedPermit>, Some, ?;
    try_acquire_many_owned_until: try_acquire_many_until(count: u32, deadline: impl Into<Deadline>)
        -> Option<CheckedOwnedPermit>, Some, ?;
}

/// The future of [`acquire_owned_async`](CheckedSemaphore::acquire_owned_async) and
/// [`acquire_many_owned_async`](CheckedSemaphore::acquire_many_owned_async).
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct CheckedAcquireOwnedAsync {
    // Dropped before the semaphore.
    acquire: AcquireAsync<'static, Private>,
    semaphore: Arc<CheckedSemaphore>,
}

impl Future for CheckedAcquireOwnedAsync {
    type Output = Result<CheckedOwnedPermit, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let semaphore = Arc::clone(&self.semaphore);
        // SAFETY: `acquire` is not moved until it is dropped in its place.
        let acquire = unsafe { self.map_unchecked_mut(|this| &mut this.acquire) };
        acquire.poll(context).map_ok(|permit| CheckedOwnedPermit::of(semaphore, permit))
    }
}

/// Owned permits for tasks, which are in no list.
impl CheckedSemaphore {
    /// As that of [`Semaphore`](ulocks_fair::SemaphoreWith::acquire_owned_async).
    pub fn acquire_owned_async(self: Arc<Self>) -> CheckedAcquireOwnedAsync {
        self.acquire_many_owned_async(1)
    }

    /// As that of [`Semaphore`](ulocks_fair::SemaphoreWith::acquire_many_owned_async).
    pub fn acquire_many_owned_async(self: Arc<Self>, count: u32) -> CheckedAcquireOwnedAsync {
        let inner: *const Semaphore = &raw const **self;
        // SAFETY: the share lives as long as the future, and is dropped after it; what it owns does
        // not move.
        let inner: &'static Semaphore = unsafe { &*inner };
        CheckedAcquireOwnedAsync { acquire: inner.acquire_many_async(count), semaphore: self }
    }
}
