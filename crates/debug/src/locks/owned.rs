//! Permits that own a share of their checked semaphore.
//!
//! `ulocks_fair::OwnedPermit` shares a `Semaphore`, and the one in a [`CheckedSemaphore`] is no
//! `Arc` of its own. So this is another type with the same methods.

use crate::locks::semaphore::CheckedSemaphore;
use ulocks_core::Private;

ulocks_fair::owned_permits! {
    CheckedSemaphore, Private, "ulocks_fair::SemaphoreWith::", [];

    /// A [`Permit`](ulocks_fair::Permit) that owns a share of its [`CheckedSemaphore`], for what a
    /// borrow cannot be in.
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
    CheckedOwnedPermit, CheckedAcquireOwnedAsync
}
