//! `MappedMutexGuard`, as in lock_api.

use super::Token;
use super::access::{Held, Watched};
use crate::lock::traits::{RawMutex, RawMutexFair};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

/// Access to a part of the data of a [`Mutex`](super::Mutex); its drop releases the lock.
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct MappedMutexGuard<'a, L: RawMutex, T: ?Sized> {
    lock: &'a Watched<L>,
    data: *mut T,
    token: Option<Token<L::Token>>,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a shared reference to the guard gives shared access to the data and to the token.
unsafe impl<L: RawMutex + Sync, T: ?Sized + Sync> Sync for MappedMutexGuard<'_, L, T> where L::Token: Sync {}

impl<'a, L: RawMutex, T: ?Sized> MappedMutexGuard<'a, L, T> {
    pub(super) fn new(lock: &'a Watched<L>, data: *mut T, token: Token<L::Token>) -> Self {
        Self { lock, data, token: Some(token), marker: PhantomData }
    }

    fn into_parts(s: Self) -> (&'a Watched<L>, Token<L::Token>) {
        let mut s = ManuallyDrop::new(s);
        (s.lock, s.token.take().expect("a mapped guard is locked until its drop"))
    }

    /// A guard of a part of the part.
    pub fn map<U: ?Sized>(mut s: Self, f: impl FnOnce(&mut T) -> &mut U) -> MappedMutexGuard<'a, L, U> {
        let data: *mut U = f(&mut s);
        let (lock, token) = Self::into_parts(s);
        MappedMutexGuard::new(lock, data, token)
    }

    /// A guard of a part of the part, or the guard itself if `f` returns `None`.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        s: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, L, U>, Self> {
        Self::try_map_or_err(s, |data| f(data).ok_or(())).map_err(|(s, ())| s)
    }

    /// A guard of a part of the part, or the guard itself and the error of `f`.
    ///
    /// # Errors
    /// The guard and what `f` returned, if that is an error.
    pub fn try_map_or_err<U: ?Sized, E>(
        mut s: Self,
        f: impl FnOnce(&mut T) -> Result<&mut U, E>,
    ) -> Result<MappedMutexGuard<'a, L, U>, (Self, E)> {
        let data: *mut U = match f(&mut s) {
            Ok(data) => data,
            Err(error) => return Err((s, error)),
        };
        let (lock, token) = Self::into_parts(s);
        Ok(MappedMutexGuard::new(lock, data, token))
    }
}

impl<L: RawMutexFair, T: ?Sized> MappedMutexGuard<'_, L, T> {
    /// Releases the lock to the longest waiter.
    #[track_caller]
    pub fn unlock_fair(s: Self) {
        let (lock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { lock.release_fair::<Held>(token) };
    }
}

impl<L: RawMutex, T: ?Sized> Deref for MappedMutexGuard<'_, L, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `data` comes from an exclusive borrow of data that the lock, held by this guard,
        // protects.
        unsafe { &*self.data }
    }
}

impl<L: RawMutex, T: ?Sized> DerefMut for MappedMutexGuard<'_, L, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.data }
    }
}

impl<L: RawMutex, T: ?Sized> Drop for MappedMutexGuard<'_, L, T> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.lock.release::<Held>(token) };
        }
    }
}

impl<L: RawMutex, T: ?Sized + fmt::Debug> fmt::Debug for MappedMutexGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<L: RawMutex, T: ?Sized + fmt::Display> fmt::Display for MappedMutexGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
