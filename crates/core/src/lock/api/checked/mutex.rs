//! `Mutex`, as in lock_api.

use super::access::{Held, Watched};
#[cfg(feature = "arc_lock")]
use super::guard::ArcMutexGuard;
use super::guard::{Guard, MutexGuard};
use super::{Raw, Token};
use crate::lock::traits::{RawMutex, RawMutexFair};
use crate::sys::time::Deadline;
use core::cell::UnsafeCell;
use core::fmt;
use core::time::Duration;
#[cfg(feature = "arc_lock")]
use std::sync::Arc;
use std::time::Instant;

/// Data behind a lock.
pub struct Mutex<L, T: ?Sized> {
    lock: Watched<L>,
    data: UnsafeCell<T>,
}

// SAFETY: the data is reached only by the thread that holds the lock, which is a `Send` of `T` from
// holder to holder.
unsafe impl<L: RawMutex + Sync, T: ?Sized + Send> Sync for Mutex<L, T> {}

impl<L: RawMutex, T> Mutex<L, T> {
    /// An unlocked mutex.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::from_raw(Raw::new(L::init()), value)
    }

    /// The data, out of the mutex.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<L, T> Mutex<L, T> {
    /// A mutex around an existing raw lock.
    #[track_caller]
    pub fn from_raw(raw: Raw<L>, value: T) -> Self {
        Self { lock: Watched::new(raw), data: UnsafeCell::new(value) }
    }

    /// The raw lock and the data, out of the mutex.
    pub fn into_inner_with_raw(self) -> (Raw<L>, T) {
        (self.lock.into_raw(), self.data.into_inner())
    }
}

impl<L, T: ?Sized> Mutex<L, T> {
    pub(super) fn parts(&self) -> &Watched<L> {
        &self.lock
    }

    /// The address of the data. The model does not see accesses through it.
    pub fn data_ptr(&self) -> *mut T {
        self.data.get()
    }
}

impl<L: RawMutex, T: ?Sized> Mutex<L, T> {
    /// A guard from the token of an acquisition made elsewhere, whose access to the data was never
    /// closed.
    ///
    /// # Safety
    /// The caller holds the lock by `guard`, and no other guard stands for that acquisition.
    pub unsafe fn make_guard_unchecked(&self, guard: Token<L::Token>) -> MutexGuard<'_, L, T> {
        Guard::new(self, guard)
    }

    /// Acquires the lock, waiting as long as it takes.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, L, T> {
        Guard::new(self, self.lock.acquire::<Held>())
    }

    /// Acquires the lock if that needs no waiting.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, L, T>> {
        Some(Guard::new(self, self.lock.try_acquire::<Held>()?))
    }

    /// Acquires the lock, or gives up after `timeout`.
    #[track_caller]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, L, T>> {
        Some(Guard::new(self, self.lock.acquire_until::<Held>(|| Deadline::after(timeout))?))
    }

    /// Acquires the lock, or gives up at `timeout`.
    #[track_caller]
    pub fn try_lock_until(&self, timeout: Instant) -> Option<MutexGuard<'_, L, T>> {
        Some(Guard::new(self, self.lock.acquire_until::<Held>(|| Deadline::at(timeout))?))
    }

    /// The data; the borrow stands for the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether a thread holds the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.lock.raw().inner().is_locked()
    }

    /// Releases the lock without a guard.
    ///
    /// # Safety
    /// The caller holds the lock by `guard`, no guard that will release it lives, and no reference
    /// to the data is used after the call.
    #[track_caller]
    pub unsafe fn force_unlock(&self, guard: Token<L::Token>) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release::<Held>(guard) };
    }

    /// As [`Mutex::force_unlock`], to the longest waiter.
    ///
    /// # Safety
    /// As [`Mutex::force_unlock`].
    #[track_caller]
    pub unsafe fn force_unlock_fair(&self, guard: Token<L::Token>)
    where
        L: RawMutexFair,
    {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release_fair::<Held>(guard) };
    }

    /// The raw lock.
    ///
    /// # Safety
    /// What is done to it keeps the promises of the guards that live.
    pub unsafe fn raw(&self) -> &Raw<L> {
        self.lock.raw()
    }
}

#[cfg(feature = "arc_lock")]
impl<L: RawMutex, T: ?Sized> Mutex<L, T> {
    /// A guard from the token of an acquisition made elsewhere, whose access to the data was never
    /// closed.
    ///
    /// # Safety
    /// The caller holds the lock by `guard`, and no other guard stands for that acquisition.
    pub unsafe fn make_arc_guard_unchecked(self: &Arc<Self>, guard: Token<L::Token>) -> ArcMutexGuard<L, T> {
        Guard::new(Arc::clone(self), guard)
    }

    /// Acquires the lock, waiting as long as it takes; the guard owns a share of the mutex.
    #[track_caller]
    pub fn lock_arc(self: &Arc<Self>) -> ArcMutexGuard<L, T> {
        Guard::new(Arc::clone(self), self.lock.acquire::<Held>())
    }

    /// Acquires the lock if that needs no waiting; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<ArcMutexGuard<L, T>> {
        Some(Guard::new(Arc::clone(self), self.lock.try_acquire::<Held>()?))
    }

    /// Acquires the lock, or gives up after `timeout`; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcMutexGuard<L, T>> {
        Some(Guard::new(Arc::clone(self), self.lock.acquire_until::<Held>(|| Deadline::after(timeout))?))
    }

    /// Acquires the lock, or gives up at `timeout`; the guard owns a share of the mutex.
    #[track_caller]
    pub fn try_lock_arc_until(self: &Arc<Self>, timeout: Instant) -> Option<ArcMutexGuard<L, T>> {
        Some(Guard::new(Arc::clone(self), self.lock.acquire_until::<Held>(|| Deadline::at(timeout))?))
    }
}

impl<L: RawMutex, T: Default> Default for Mutex<L, T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<L: RawMutex, T> From<T> for Mutex<L, T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<L: RawMutex, T: ?Sized + fmt::Debug> fmt::Debug for Mutex<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard).finish(),
            None => shown.field("data", &format_args!("<locked>")).finish(),
        }
    }
}

#[cfg(feature = "serde")]
impl<L: RawMutex, T: ?Sized + serde::Serialize> serde::Serialize for Mutex<L, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, L: RawMutex, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Mutex<L, T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
