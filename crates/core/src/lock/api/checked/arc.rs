//! `ArcMutexGuard`, and the methods of `Mutex` that make one, as in lock_api.

use super::Token;
use super::access::Held;
use super::mutex::Mutex;
use crate::lock::traits::{RawMutex, RawMutexFair};
use crate::sys::time::Deadline;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Access to the data of a [`Mutex`] of which the guard owns a share; its drop releases the lock.
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct ArcMutexGuard<L: RawMutex, T: ?Sized> {
    mutex: Arc<Mutex<L, T>>,
    /// Present but while the guard is unlocked, where only a panic can find it missing.
    token: Option<Token<L::Token>>,
    marker: PhantomData<T>,
}

impl<L: RawMutex, T: ?Sized> Mutex<L, T> {
    /// A guard from the token of an acquisition made elsewhere, whose access to the data was never
    /// closed.
    ///
    /// # Safety
    /// The caller holds the lock by `guard`, and no other guard stands for that acquisition.
    pub unsafe fn make_arc_guard_unchecked(self: &Arc<Self>, guard: Token<L::Token>) -> ArcMutexGuard<L, T> {
        ArcMutexGuard::new(self, guard)
    }

    /// Acquires the lock, waiting as long as it takes; the guard owns a share of the mutex.
    #[track_caller]
    pub fn lock_arc(self: &Arc<Self>) -> ArcMutexGuard<L, T> {
        ArcMutexGuard::new(self, self.parts().acquire::<Held>())
    }

    /// Acquires the lock if that needs no waiting; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<ArcMutexGuard<L, T>> {
        Some(ArcMutexGuard::new(self, self.parts().try_acquire::<Held>()?))
    }

    /// Acquires the lock, or gives up after `timeout`; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcMutexGuard<L, T>> {
        Some(ArcMutexGuard::new(self, self.parts().acquire_until::<Held>(|| Deadline::after(timeout))?))
    }

    /// Acquires the lock, or gives up at `timeout`; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc_until(self: &Arc<Self>, timeout: Instant) -> Option<ArcMutexGuard<L, T>> {
        Some(ArcMutexGuard::new(self, self.parts().acquire_until::<Held>(|| Deadline::at(timeout))?))
    }
}

impl<L: RawMutex, T: ?Sized> ArcMutexGuard<L, T> {
    fn new(mutex: &Arc<Mutex<L, T>>, token: Token<L::Token>) -> Self {
        Self { mutex: Arc::clone(mutex), token: Some(token), marker: PhantomData }
    }

    /// The mutex this guard is of.
    pub fn mutex(s: &Self) -> &Arc<Mutex<L, T>> {
        &s.mutex
    }

    fn into_parts(s: Self) -> (Arc<Mutex<L, T>>, Token<L::Token>) {
        let mut s = ManuallyDrop::new(s);
        let token = s.token.take().expect("a guard that can be moved is locked");
        // SAFETY: `s` is neither used nor dropped any more, so the share moves out.
        (unsafe { ptr::read(&s.mutex) }, token)
    }

    /// Releases the lock and returns the guard's share of the mutex.
    #[track_caller]
    pub fn into_arc(s: Self) -> Arc<Mutex<L, T>> {
        let (mutex, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { mutex.parts().release::<Held>(token) };
        mutex
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
}

impl<L: RawMutexFair, T: ?Sized> ArcMutexGuard<L, T> {
    /// Releases the lock to the longest waiter.
    #[track_caller]
    pub fn unlock_fair(s: Self) {
        drop(Self::into_arc_fair(s));
    }

    /// Releases the lock to the longest waiter and returns the guard's share of the mutex.
    #[track_caller]
    pub fn into_arc_fair(s: Self) -> Arc<Mutex<L, T>> {
        let (mutex, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        unsafe { mutex.parts().release_fair::<Held>(token) };
        mutex
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

impl<L: RawMutex, T: ?Sized> Deref for ArcMutexGuard<L, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a guard holds the lock whenever it can be borrowed.
        unsafe { &*self.mutex.data_ptr() }
    }
}

impl<L: RawMutex, T: ?Sized> DerefMut for ArcMutexGuard<L, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data_ptr() }
    }
}

impl<L: RawMutex, T: ?Sized> Drop for ArcMutexGuard<L, T> {
    #[track_caller]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is of this guard, and so was every reference to the data.
            unsafe { self.mutex.parts().release::<Held>(token) };
        }
    }
}
