//! The guards of an [`RwLock`], as in lock_api: one type, by what keeps the lock alive and which
//! access it gives.

use super::super::Token;
use super::super::access::{Access, Exclusive, FairAccess, Shared, Upgradable, Watched};
use super::RwLock;
use crate::lock::traits::RawRwLock;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;
#[cfg(feature = "arc_lock")]
use std::sync::Arc;

/// Shared access to the data of an [`RwLock`]; its drop releases the lock.
pub type RwLockReadGuard<'a, L, T> = Guard<&'a RwLock<L, T>, L, Shared>;
/// Exclusive access to the data of an [`RwLock`]; its drop releases the lock.
pub type RwLockWriteGuard<'a, L, T> = Guard<&'a RwLock<L, T>, L, Exclusive>;
/// Shared access to the data of an [`RwLock`] that can become exclusive; its drop releases the
/// lock.
pub type RwLockUpgradableReadGuard<'a, L, T> = Guard<&'a RwLock<L, T>, L, Upgradable>;
/// As [`RwLockReadGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockReadGuard<L, T> = Guard<Arc<RwLock<L, T>>, L, Shared>;
/// As [`RwLockWriteGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockWriteGuard<L, T> = Guard<Arc<RwLock<L, T>>, L, Exclusive>;
/// As [`RwLockUpgradableReadGuard`], and owns a share of the lock.
#[cfg(feature = "arc_lock")]
pub type ArcRwLockUpgradableReadGuard<L, T> = Guard<Arc<RwLock<L, T>>, L, Upgradable>;

/// What keeps the lock of a guard alive.
pub trait Hold<L>: Deref<Target = RwLock<L, Self::Data>> {
    /// What the lock protects.
    type Data: ?Sized;
}

impl<L, T: ?Sized> Hold<L> for &RwLock<L, T> {
    type Data = T;
}

#[cfg(feature = "arc_lock")]
impl<L, T: ?Sized> Hold<L> for Arc<RwLock<L, T>> {
    type Data = T;
}

/// Access of kind `A` to the data of the lock that `H` holds; its drop releases the lock.
#[must_use = "if unused the RwLock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct Guard<H: Hold<L>, L: RawRwLock, A: Access<L>> {
    rwlock: H,
    /// Present but while the guard is unlocked, where only a panic can find it missing.
    token: Option<Token<A::Token>>,
}

impl<H: Hold<L>, L: RawRwLock, A: Access<L>> Guard<H, L, A> {
    pub(super) fn new(rwlock: H, token: Token<A::Token>) -> Self {
        Self { rwlock, token: Some(token) }
    }

    /// What holds the lock, and the token, which the caller now has to release.
    pub(super) fn into_parts(s: Self) -> (H, Token<A::Token>) {
        let mut s = ManuallyDrop::new(s);
        let token = s.token.take().expect("a guard that can be moved is locked");
        // SAFETY: `s` is neither used nor dropped any more, so the holder moves out.
        (unsafe { ptr::read(&s.rwlock) }, token)
    }

    pub(super) fn lock(s: &Self) -> &Watched<L> {
        &s.rwlock.lock
    }

    /// Takes the token out of a guard, and puts back the one `f` returns.
    #[track_caller]
    pub(super) fn replace<R>(
        s: &mut Self,
        f: impl FnOnce(&RwLock<L, H::Data>, Token<A::Token>) -> (Token<A::Token>, R),
    ) -> R {
        let token = s.token.take().expect("a guard that can be borrowed is locked");
        let (token, result) = f(&s.rwlock, token);
        s.token = Some(token);
        result
    }

    /// Runs `f` with the lock released, and acquires it again.
    #[track_caller]
    pub fn unlocked<U>(s: &mut Self, f: impl FnOnce() -> U) -> U {
        if let Some(token) = s.token.take() {
            // SAFETY: the token is of this guard, whose exclusive borrow rules out references to
            // the data.
            unsafe { Self::lock(s).release::<A>(token) };
        }
        let result = f();
        s.token = Some(Self::lock(s).acquire::<A>());
        result
    }
}

impl<H: Hold<L>, L: RawRwLock, A: FairAccess<L>> Guard<H, L, A> {
    #[track_caller]
    fn release_fair(s: Self) -> H {
        let (rwlock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { rwlock.lock.release_fair::<A>(token) };
        rwlock
    }

    /// Releases the lock to the longest waiter.
    #[track_caller]
    pub fn unlock_fair(s: Self) {
        drop(Self::release_fair(s));
    }

    /// Runs `f` with the lock released to the longest waiter, and acquires it again.
    #[track_caller]
    pub fn unlocked_fair<U>(s: &mut Self, f: impl FnOnce() -> U) -> U {
        if let Some(token) = s.token.take() {
            // SAFETY: the token is of this guard, whose exclusive borrow rules out references to
            // the data.
            unsafe { Self::lock(s).release_fair::<A>(token) };
        }
        let result = f();
        s.token = Some(Self::lock(s).acquire::<A>());
        result
    }

    /// Lets the longest waiter have its turn, if there is one.
    #[track_caller]
    pub fn bump(s: &mut Self) {
        Self::unlocked_fair(s, || ());
    }
}

impl<'a, L: RawRwLock, T: ?Sized, A: Access<L>> Guard<&'a RwLock<L, T>, L, A> {
    /// The lock this guard is of.
    pub fn rwlock(s: &Self) -> &'a RwLock<L, T> {
        s.rwlock
    }
}

#[cfg(feature = "arc_lock")]
impl<L: RawRwLock, T: ?Sized, A: Access<L>> Guard<Arc<RwLock<L, T>>, L, A> {
    /// The lock this guard is of.
    pub fn rwlock(s: &Self) -> &Arc<RwLock<L, T>> {
        &s.rwlock
    }

    /// Releases the lock and returns the guard's share of it.
    #[track_caller]
    pub fn into_arc(s: Self) -> Arc<RwLock<L, T>> {
        let (rwlock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { rwlock.lock.release::<A>(token) };
        rwlock
    }

    /// Releases the lock to the longest waiter and returns the guard's share of it.
    #[track_caller]
    pub fn into_arc_fair(s: Self) -> Arc<RwLock<L, T>>
    where
        A: FairAccess<L>,
    {
        Self::release_fair(s)
    }
}

impl<H: Hold<L>, L: RawRwLock, A: Access<L>> Deref for Guard<H, L, A> {
    type Target = H::Data;
    fn deref(&self) -> &H::Data {
        // SAFETY: a guard holds the lock, shared at least, whenever it can be borrowed.
        unsafe { &*self.rwlock.data_ptr() }
    }
}

impl<H: Hold<L>, L: RawRwLock> DerefMut for Guard<H, L, Exclusive> {
    fn deref_mut(&mut self) -> &mut H::Data {
        // SAFETY: a guard holds the lock, here alone, whenever it can be borrowed; and it is
        // borrowed exclusively.
        unsafe { &mut *self.rwlock.data_ptr() }
    }
}

impl<H: Hold<L>, L: RawRwLock, A: Access<L>> Drop for Guard<H, L, A> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.rwlock.lock.release::<A>(token) };
        }
    }
}

impl<H: Hold<L>, L: RawRwLock, A: Access<L>> fmt::Debug for Guard<H, L, A>
where
    H::Data: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<H: Hold<L>, L: RawRwLock, A: Access<L>> fmt::Display for Guard<H, L, A>
where
    H::Data: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
