//! `MappedMutexGuard`, `MappedRwLockReadGuard` and `MappedRwLockWriteGuard`, as in lock_api.

use super::access::{Access, Exclusive, FairAccess, Held, Shared, SoleAccess, Watched};
use super::guard::{Guard, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use super::{RwLock, Token};
use crate::lock::traits::{RawMutex, RawRwLock};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Access to a part of the data of a [`Mutex`](super::Mutex); its drop releases the lock.
pub type MappedMutexGuard<'a, L, T> = Mapped<'a, L, T, Held>;
/// Shared access to a part of the data of an [`RwLock`]; its drop releases the lock.
pub type MappedRwLockReadGuard<'a, L, T> = Mapped<'a, L, T, Shared>;
/// Exclusive access to a part of the data of an [`RwLock`]; its drop releases the lock.
pub type MappedRwLockWriteGuard<'a, L, T> = Mapped<'a, L, T, Exclusive>;

/// Access of kind `A` to a part of the data of a lock; its drop releases the lock.
#[must_use = "if unused the lock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct Mapped<'a, L, T: ?Sized, A: Access<L>> {
    lock: &'a Watched<L>,
    /// Written through only if the access is exclusive.
    data: NonNull<T>,
    token: Option<Token<A::Token>>,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a shared reference to the guard gives shared access to the data and to the token.
unsafe impl<L: Sync, T: ?Sized + Sync, A: Access<L>> Sync for Mapped<'_, L, T, A> where A::Token: Sync {}

impl<'a, L, T: ?Sized, A: Access<L>> Mapped<'a, L, T, A> {
    fn new(lock: &'a Watched<L>, data: NonNull<T>, token: Token<A::Token>) -> Self {
        Self { lock, data, token: Some(token), marker: PhantomData }
    }

    fn into_parts(s: Self) -> (&'a Watched<L>, Token<A::Token>) {
        let mut s = ManuallyDrop::new(s);
        (s.lock, s.token.take().expect("a mapped guard is locked until its drop"))
    }

    fn part<U: ?Sized>(s: Self, data: NonNull<U>) -> Mapped<'a, L, U, A> {
        let (lock, token) = Self::into_parts(s);
        Mapped::new(lock, data, token)
    }
}

/// What maps a guard to a guard of a part, for shared access by `&` and for exclusive access by
/// `&mut`.
macro_rules! mappings {
    ($access:ident $(, $mutable:tt)?) => {
        /// A guard of a part of the data.
        pub fn map<U: ?Sized>(
            $($mutable)? s: Self,
            f: impl FnOnce(&$($mutable)? T) -> &$($mutable)? U,
        ) -> Mapped<'a, L, U, $access> {
            let data = NonNull::from(f(&$($mutable)? s));
            Self::part(s, data)
        }

        /// A guard of a part of the data, or the guard itself if `f` returns `None`.
        ///
        /// # Errors
        /// The guard, if `f` returns `None`.
        pub fn try_map<U: ?Sized>(
            s: Self,
            f: impl FnOnce(&$($mutable)? T) -> Option<&$($mutable)? U>,
        ) -> Result<Mapped<'a, L, U, $access>, Self> {
            Self::try_map_or_err(s, |data| f(data).ok_or(())).map_err(|(s, ())| s)
        }

        /// A guard of a part of the data, or the guard itself and the error of `f`.
        ///
        /// # Errors
        /// The guard and what `f` returned, if that is an error.
        pub fn try_map_or_err<U: ?Sized, E>(
            $($mutable)? s: Self,
            f: impl FnOnce(&$($mutable)? T) -> Result<&$($mutable)? U, E>,
        ) -> Result<Mapped<'a, L, U, $access>, (Self, E)> {
            let data = match f(&$($mutable)? s) {
                Ok(data) => NonNull::from(data),
                Err(error) => return Err((s, error)),
            };
            Ok(Self::part(s, data))
        }
    };
}

impl<'a, L, T: ?Sized, A: Access<L>> Guard<&'a RwLock<L, T>, L, A> {
    fn part<U: ?Sized>(s: Self, data: NonNull<U>) -> Mapped<'a, L, U, A> {
        let (rwlock, token) = Self::into_parts(s);
        Mapped::new(rwlock.parts(), data, token)
    }
}

impl<'a, L: RawMutex, T: ?Sized> MutexGuard<'a, L, T> {
    fn part<U: ?Sized>(s: Self, data: NonNull<U>) -> MappedMutexGuard<'a, L, U> {
        let (mutex, token) = Self::into_parts(s);
        Mapped::new(mutex.parts(), data, token)
    }

    mappings!(Held, mut);
}

impl<'a, L: RawMutex, T: ?Sized> MappedMutexGuard<'a, L, T> {
    mappings!(Held, mut);
}

impl<'a, L: RawRwLock, T: ?Sized> RwLockReadGuard<'a, L, T> {
    mappings!(Shared);
}

impl<'a, L: RawRwLock, T: ?Sized> RwLockWriteGuard<'a, L, T> {
    mappings!(Exclusive, mut);
}

impl<'a, L: RawRwLock, T: ?Sized> MappedRwLockReadGuard<'a, L, T> {
    mappings!(Shared);
}

impl<'a, L: RawRwLock, T: ?Sized> MappedRwLockWriteGuard<'a, L, T> {
    mappings!(Exclusive, mut);
}

impl<L, T: ?Sized, A: FairAccess<L>> Mapped<'_, L, T, A> {
    /// Releases the lock to the longest waiter.
    #[track_caller]
    pub fn unlock_fair(s: Self) {
        let (lock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { lock.release_fair::<A>(token) };
    }
}

impl<L, T: ?Sized, A: Access<L>> Deref for Mapped<'_, L, T, A> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `data` comes from a borrow of data that the lock, held by this guard, protects.
        unsafe { self.data.as_ref() }
    }
}

impl<L, T: ?Sized, A: SoleAccess<L>> DerefMut for Mapped<'_, L, T, A> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the borrow was exclusive, as is that of the guard.
        unsafe { self.data.as_mut() }
    }
}

impl<L, T: ?Sized, A: Access<L>> Drop for Mapped<'_, L, T, A> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.lock.release::<A>(token) };
        }
    }
}

impl<L, T: ?Sized + fmt::Debug, A: Access<L>> fmt::Debug for Mapped<'_, L, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<L, T: ?Sized + fmt::Display, A: Access<L>> fmt::Display for Mapped<'_, L, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
