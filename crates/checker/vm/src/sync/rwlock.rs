//! A reader-writer lock of std's shape.

use super::object::{Object, guard, lock};
use crate::engine::{At, Until};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{LockResult, TryLockError, TryLockResult};

/// The word is this bit, or the number of readers.
const WRITER: u64 = 1 << 63;

/// As `std::sync::RwLock`, and never poisoned: a panic ends the run.
///
/// An acquisition is one step. Any waiter may be next, and readers may overtake a writer. A reader
/// knows what the readers before it did; std does not promise that.
pub struct RwLock<T: ?Sized> {
    state: Object,
    data: UnsafeCell<T>,
}

// SAFETY: to send the lock is to send the data; the word is `Send`.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: the data is reached by one writer, or by readers that share it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

guard! {
    /// Shared access to the data of a [`RwLock`].
    RwLockReadGuard of RwLock, |readers| readers - 1
}

guard! {
    /// Exclusive access to the data of a [`RwLock`].
    RwLockWriteGuard of RwLock, |_| 0
}

lock! { RwLock }

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer holds the lock, and shares it.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        self.state.step("read", Some(Until::Clear(WRITER)), Acquire, at, |readers| readers + 1);
        Ok(RwLockReadGuard::of(self, at))
    }

    /// Shares the lock if no writer holds it.
    ///
    /// # Errors
    /// `WouldBlock` if one does.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        let shared = |value: u64| (value & WRITER == 0).then_some(value + 1);
        match self.state.try_step("try_read", Acquire, at, shared) {
            Ok(_) => Ok(RwLockReadGuard::of(self, at)),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }

    /// Waits until the lock is free, and takes it.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        self.state.step("write", Some(Until::Clear(u64::MAX)), Acquire, at, |_| WRITER);
        Ok(RwLockWriteGuard::of(self, at))
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// `WouldBlock` if it is not.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        match self.state.try_step("try_write", Acquire, at, |value| (value == 0).then_some(WRITER)) {
            Ok(_) => Ok(RwLockWriteGuard::of(self, at)),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.peek();
        let (written, readers) = (state & WRITER != 0, state & !WRITER);
        f.debug_struct("RwLock").field("written", &written).field("readers", &readers).finish_non_exhaustive()
    }
}
