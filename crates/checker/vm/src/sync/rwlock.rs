//! A reader-writer lock of std's shape.

use super::object::Object;
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
/// An acquisition is one step. Any waiter may be next, and readers may overtake a writer.
pub struct RwLock<T: ?Sized> {
    state: Object,
    data: UnsafeCell<T>,
}

// SAFETY: to send the lock is to send the data; the word is `Send`.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: the data is reached by one writer, or by readers that share it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// Shared access to the data of a [`RwLock`].
#[must_use = "the lock is released at once if its guard is not kept"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    at: At,
    not_send: PhantomData<*const ()>,
}

/// Exclusive access to the data of a [`RwLock`].
#[must_use = "the lock is released at once if its guard is not kept"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    at: At,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the data, and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// A free lock.
    #[track_caller]
    pub fn new(data: T) -> Self {
        Self { state: Object::new(0), data: UnsafeCell::new(data) }
    }

    /// The data.
    ///
    /// # Errors
    /// None: the type is std's.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.data.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer holds the lock, and shares it.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        self.state.step("read", Some(Until::Clear(WRITER)), Acquire, at, |readers| readers + 1);
        Ok(RwLockReadGuard { lock: self, at, not_send: PhantomData })
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
            Ok(_) => Ok(RwLockReadGuard { lock: self, at, not_send: PhantomData }),
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
        Ok(RwLockWriteGuard { lock: self, at, not_send: PhantomData })
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// `WouldBlock` if it is not.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        match self.state.try_step("try_write", Acquire, at, |value| (value == 0).then_some(WRITER)) {
            Ok(_) => Ok(RwLockWriteGuard { lock: self, at, not_send: PhantomData }),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }

    /// The data, without the lock: the caller has it to itself.
    ///
    /// # Errors
    /// None: the type is std's.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.data.get_mut())
    }

    /// Never: a panic ends the run.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        false
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread shares the lock, so no thread writes the data.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.step("unlock", None, Release, self.at, |readers| readers - 1);
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.step("unlock", None, Release, self.at, |_| 0);
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(data: T) -> Self {
        Self::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.peek();
        let (written, readers) = (state & WRITER != 0, state & !WRITER);
        f.debug_struct("RwLock").field("written", &written).field("readers", &readers).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
