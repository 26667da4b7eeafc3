//! The guards of a [`Mutex`] and of an [`RwLock`], as in lock_api: one type, by what keeps the lock
//! alive and which access it gives.

use super::access::{Access, Exclusive, FairAccess, Held, Shared, SoleAccess, Upgradable, Watched};
use super::{Mutex, RwLock, Token};
use crate::lock::traits::RawMutex;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::ptr;
#[cfg(feature = "arc_lock")]
use std::sync::Arc;

/// Access to the data of a [`Mutex`]; its drop releases the lock.
pub type MutexGuard<'a, L, T> = Guard<&'a Mutex<L, T>, L, Held>;
/// As [`MutexGuard`], and owns a share of the mutex.
#[cfg(feature = "arc_lock")]
pub type ArcMutexGuard<L, T> = Guard<Arc<Mutex<L, T>>, L, Held>;
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
pub trait Hold<L> {
    /// What the lock protects.
    type Data: ?Sized;
    /// The lock without its data.
    fn watched(&self) -> &Watched<L>;
    /// The address of the data.
    fn data(&self) -> *mut Self::Data;
}

macro_rules! holds {
    ($($holder:ty),*) => { $(
        impl<L, T: ?Sized> Hold<L> for $holder {
            type Data = T;
            fn watched(&self) -> &Watched<L> {
                self.parts()
            }
            fn data(&self) -> *mut T {
                self.data_ptr()
            }
        }
    )* };
}

holds!(&Mutex<L, T>, &RwLock<L, T>);
#[cfg(feature = "arc_lock")]
holds!(Arc<Mutex<L, T>>, Arc<RwLock<L, T>>);

/// Access of kind `A` to the data of the lock that `H` holds; its drop releases the lock.
#[must_use = "if unused the lock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct Guard<H: Hold<L>, L, A: Access<L>> {
    lock: H,
    /// Present but while the guard is unlocked, where only a panic can find it missing.
    token: Option<Token<A::Token>>,
    /// Not sent, and shared only if the data can be; no more about the data, for the variance.
    marker: PhantomData<*const ()>,
}

// SAFETY: a shared reference to the guard gives shared access to the data, the lock and the token.
unsafe impl<H: Hold<L> + Sync, L, A: Access<L>> Sync for Guard<H, L, A>
where
    H::Data: Sync,
    A::Token: Sync,
{
}

impl<H: Hold<L>, L, A: Access<L>> Guard<H, L, A> {
    pub(super) fn new(lock: H, token: Token<A::Token>) -> Self {
        Self { lock, token: Some(token), marker: PhantomData }
    }

    /// What holds the lock, and the token, which the caller now has to release.
    pub(super) fn into_parts(s: Self) -> (H, Token<A::Token>) {
        let mut s = ManuallyDrop::new(s);
        let token = s.token.take().expect("a guard that can be moved is locked");
        // SAFETY: `s` is neither used nor dropped any more, so the holder moves out.
        (unsafe { ptr::read(&s.lock) }, token)
    }

    pub(super) fn lock(s: &Self) -> &Watched<L> {
        s.lock.watched()
    }

    /// Takes the token out of a guard, and puts back the one `f` returns.
    #[track_caller]
    pub(super) fn replace<R>(s: &mut Self, f: impl FnOnce(&H, Token<A::Token>) -> (Token<A::Token>, R)) -> R {
        let token = s.token.take().expect("a guard that can be borrowed is locked");
        let (token, result) = f(&s.lock, token);
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

impl<H: Hold<L>, L, A: FairAccess<L>> Guard<H, L, A> {
    #[track_caller]
    fn release_fair(s: Self) -> H {
        let (rwlock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { rwlock.watched().release_fair::<A>(token) };
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
        if let Some(token) = s.token.take() {
            // SAFETY: as in `unlocked_fair`.
            s.token = Some(unsafe { Self::lock(s).bump::<A>(token) });
        }
    }
}

impl<'a, L, T: ?Sized, A: Access<L>> Guard<&'a RwLock<L, T>, L, A> {
    /// The lock this guard is of.
    pub fn rwlock(s: &Self) -> &'a RwLock<L, T> {
        s.lock
    }
}

impl<'a, L: RawMutex, T: ?Sized> MutexGuard<'a, L, T> {
    /// The mutex this guard is of.
    pub fn mutex(s: &Self) -> &'a Mutex<L, T> {
        s.lock
    }

    /// The data, for as long as the mutex lives; the lock is never released.
    pub fn leak(s: Self) -> &'a mut T {
        let data = s.lock.data_ptr();
        mem::forget(s);
        // SAFETY: the lock is held for ever, and only by this guard.
        unsafe { &mut *data }
    }

    /// Runs a wait that releases the lock and acquires it again, or fails to; there is no guard
    /// then.
    #[track_caller]
    pub(super) fn wait_with<E>(s: Self, wait: impl FnOnce(&L) -> Result<L::Token, E>) -> Result<Self, E> {
        let (mutex, _token) = Self::into_parts(s);
        mutex.parts().close::<Held>();
        Ok(Self::new(mutex, mutex.parts().acquire_with::<Held, E>(wait)?))
    }

    /// Runs a wait of a condition variable, which releases the lock and acquires it again.
    #[track_caller]
    pub(super) fn without<R>(s: &mut Self, wait: impl FnOnce(&L, L::Token) -> (L::Token, R)) -> R {
        Self::replace(s, |mutex, token| mutex.parts().without(token, wait))
    }
}

#[cfg(feature = "arc_lock")]
impl<L, T: ?Sized, A: Access<L>> Guard<Arc<RwLock<L, T>>, L, A> {
    /// The lock this guard is of.
    pub fn rwlock(s: &Self) -> &Arc<RwLock<L, T>> {
        &s.lock
    }
}

#[cfg(feature = "arc_lock")]
impl<L: RawMutex, T: ?Sized> ArcMutexGuard<L, T> {
    /// The mutex this guard is of.
    pub fn mutex(s: &Self) -> &Arc<Mutex<L, T>> {
        &s.lock
    }
}

#[cfg(feature = "arc_lock")]
impl<L, K: ?Sized, A: Access<L>> Guard<Arc<K>, L, A>
where
    Arc<K>: Hold<L>,
{
    /// Releases the lock and returns the guard's share of it.
    #[track_caller]
    pub fn into_arc(s: Self) -> Arc<K> {
        let (lock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { lock.watched().release::<A>(token) };
        lock
    }

    /// Releases the lock to the longest waiter and returns the guard's share of it.
    #[track_caller]
    pub fn into_arc_fair(s: Self) -> Arc<K>
    where
        A: FairAccess<L>,
    {
        Self::release_fair(s)
    }
}

impl<H: Hold<L>, L, A: Access<L>> Deref for Guard<H, L, A> {
    type Target = H::Data;
    fn deref(&self) -> &H::Data {
        // SAFETY: a guard holds the lock, shared at least, whenever it can be borrowed.
        unsafe { &*self.lock.data() }
    }
}

impl<H: Hold<L>, L, A: SoleAccess<L>> DerefMut for Guard<H, L, A> {
    fn deref_mut(&mut self) -> &mut H::Data {
        // SAFETY: a guard holds the lock, here alone, whenever it can be borrowed; and it is
        // borrowed exclusively.
        unsafe { &mut *self.lock.data() }
    }
}

impl<H: Hold<L>, L, A: Access<L>> Drop for Guard<H, L, A> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.lock.watched().release::<A>(token) };
        }
    }
}

impl<H: Hold<L>, L, A: Access<L>> fmt::Debug for Guard<H, L, A>
where
    H::Data: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<H: Hold<L>, L, A: Access<L>> fmt::Display for Guard<H, L, A>
where
    H::Data: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
