//! `MutexGuard`, as in lock_api.

use super::Token;
use super::access::{Held, Watched};
use super::mapped::MappedMutexGuard;
use super::mutex::Mutex;
use crate::lock::traits::{RawMutex, RawMutexFair};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};

/// Access to the data of a [`Mutex`]; its drop releases the lock.
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'a, L: RawMutex, T: ?Sized> {
    mutex: &'a Mutex<L, T>,
    /// Present but while the guard is unlocked, where only a panic can find it missing.
    token: Option<Token<L::Token>>,
    marker: PhantomData<&'a mut T>,
}

impl<'a, L: RawMutex, T: ?Sized> MutexGuard<'a, L, T> {
    pub(super) fn new(mutex: &'a Mutex<L, T>, token: Token<L::Token>) -> Self {
        Self { mutex, token: Some(token), marker: PhantomData }
    }

    /// The mutex this guard is of.
    pub fn mutex(s: &Self) -> &'a Mutex<L, T> {
        s.mutex
    }

    /// The lock and the token, which the caller now has to release.
    fn into_parts(s: Self) -> (&'a Watched<L>, Token<L::Token>) {
        let mut s = ManuallyDrop::new(s);
        (s.mutex.parts(), s.token.take().expect("a guard that can be moved is locked"))
    }

    /// A guard of a part of the data.
    pub fn map<U: ?Sized>(mut s: Self, f: impl FnOnce(&mut T) -> &mut U) -> MappedMutexGuard<'a, L, U> {
        let data: *mut U = f(&mut s);
        let (lock, token) = Self::into_parts(s);
        MappedMutexGuard::new(lock, data, token)
    }

    /// A guard of a part of the data, or the guard itself if `f` returns `None`.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        s: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, L, U>, Self> {
        Self::try_map_or_err(s, |data| f(data).ok_or(())).map_err(|(s, ())| s)
    }

    /// A guard of a part of the data, or the guard itself and the error of `f`.
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

    /// Runs `f` with the lock released, and acquires it again.
    #[track_caller]
    pub fn unlocked<U>(s: &mut Self, f: impl FnOnce() -> U) -> U {
        if let Some(token) = s.token.take() {
            // SAFETY: the token is of this guard, whose exclusive borrow rules out references to
            // the data.
            unsafe { s.mutex.parts().release::<Held>(token) };
        }
        let result = f();
        s.token = Some(s.mutex.parts().acquire::<Held>());
        result
    }

    /// Runs a wait that releases the lock and acquires it again, or fails to; there is no guard
    /// then.
    #[track_caller]
    pub(super) fn wait_with<E>(s: Self, wait: impl FnOnce(&L) -> Result<L::Token, E>) -> Result<Self, E> {
        let mutex = s.mutex;
        let (lock, _token) = Self::into_parts(s);
        lock.close::<Held>();
        Ok(Self::new(mutex, lock.acquire_with::<Held, E>(wait)?))
    }

    /// The data, for as long as the mutex lives; the lock is never released.
    pub fn leak(s: Self) -> &'a mut T {
        let data = s.mutex.data_ptr();
        mem::forget(s);
        // SAFETY: the lock is held for ever, and only by this guard.
        unsafe { &mut *data }
    }

    /// Runs a wait of a condition variable, which releases the lock and acquires it again.
    #[track_caller]
    pub(super) fn without<R>(s: &mut Self, wait: impl FnOnce(&L, L::Token) -> (L::Token, R)) -> R {
        let token = s.token.take().expect("a guard that can be borrowed is locked");
        let (token, result) = s.mutex.parts().without(token, wait);
        s.token = Some(token);
        result
    }
}

impl<L: RawMutexFair, T: ?Sized> MutexGuard<'_, L, T> {
    /// Releases the lock to the longest waiter.
    #[track_caller]
    pub fn unlock_fair(s: Self) {
        let (lock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { lock.release_fair::<Held>(token) };
    }

    /// Runs `f` with the lock released to the longest waiter, and acquires it again.
    #[track_caller]
    pub fn unlocked_fair<U>(s: &mut Self, f: impl FnOnce() -> U) -> U {
        if let Some(token) = s.token.take() {
            // SAFETY: the token is of this guard, whose exclusive borrow rules out references to
            // the data.
            unsafe { s.mutex.parts().release_fair::<Held>(token) };
        }
        let result = f();
        s.token = Some(s.mutex.parts().acquire::<Held>());
        result
    }

    /// Lets the longest waiter have its turn, if there is one.
    #[track_caller]
    pub fn bump(s: &mut Self) {
        Self::unlocked_fair(s, || ());
    }
}

impl<L: RawMutex, T: ?Sized> Deref for MutexGuard<'_, L, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a guard holds the lock whenever it can be borrowed.
        unsafe { &*self.mutex.data_ptr() }
    }
}

impl<L: RawMutex, T: ?Sized> DerefMut for MutexGuard<'_, L, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data_ptr() }
    }
}

impl<L: RawMutex, T: ?Sized> Drop for MutexGuard<'_, L, T> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.mutex.parts().release::<Held>(token) };
        }
    }
}

impl<L: RawMutex, T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<L: RawMutex, T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
