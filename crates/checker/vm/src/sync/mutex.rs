//! A mutex of std's shape.

use super::object::{Object, guard, lock};
use crate::engine::{At, Until};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{LockResult, TryLockError, TryLockResult};

const FREE: u64 = 0;
const HELD: u64 = 1;

/// As `std::sync::Mutex`, and never poisoned: a panic ends the run.
///
/// An acquisition is one step. Any waiter may be next.
///
/// # Examples
/// ```
/// use ulocks_vm::explore::{Config, explore};
/// use ulocks_vm::sync::{Arc, Mutex};
/// use ulocks_vm::thread;
///
/// explore(Config::exhaustive(), || {
///     let count = Arc::new(Mutex::new(0));
///     let other = {
///         let count = Arc::clone(&count);
///         thread::spawn(move || *count.lock().unwrap() += 1)
///     };
///     *count.lock().unwrap() += 1;
///     other.join().unwrap();
///     assert_eq!(*count.lock().unwrap(), 2);
/// });
/// ```
pub struct Mutex<T: ?Sized> {
    state: Object,
    data: UnsafeCell<T>,
}

// SAFETY: to send the mutex is to send the data; the word is `Send`.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the data is reached by the one thread that holds the mutex.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

guard! {
    /// The right to the data of a [`Mutex`], which is released when it goes.
    MutexGuard of Mutex, |_| FREE
}

lock! { Mutex }

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and takes it.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(self.take(Location::caller()))
    }

    pub(super) fn take(&self, at: At) -> MutexGuard<'_, T> {
        self.state.step("lock", Some(Until::Clear(HELD)), Acquire, at, |_| HELD);
        MutexGuard::of(self, at)
    }

    /// Takes the mutex if it is free.
    ///
    /// # Errors
    /// `WouldBlock` if it is not.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        match self.state.try_step("try_lock", Acquire, at, |value| (value == FREE).then_some(HELD)) {
            Ok(_) => Ok(MutexGuard::of(self, at)),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.lock
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.state.peek() == HELD;
        f.debug_struct("Mutex").field("held", &held).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
