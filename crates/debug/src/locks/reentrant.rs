//! [`CheckedReentrantMutex`]: a checked mutex that its holder may lock again.
//!
//! lock_api counts how often the holder has it. The checker sees the first acquisition and the last
//! release. Between lock_api and the raw lock is a closure, which hides the line of the user. So
//! the typed face leaves that line in a variable of the thread.

use crate::locks::checker::Checked;
use crate::locks::wrapper::wrapper;
use crate::seen::class::Origin;
use crate::seen::report::Place;
use core::cell::Cell;
use core::panic::Location;
use core::time::Duration;
#[cfg(feature = "arc_lock")]
use std::sync::Arc;
use std::time::Instant;
use ulocks_core::api::{self, Raw, ThreadId};
use ulocks_core::futex::Local;
use ulocks_core::lock_api;
use ulocks_core::raw::{Initial, RawMutex, RawMutexFair};
use ulocks_core::time::Deadline;

std::thread_local! {
    /// The line of the call that is under way.
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Runs `call` for the caller of `at`.
pub(super) fn called_at<T>(at: Place, call: impl FnOnce() -> T) -> T {
    /// A signal handler may interrupt another call.
    struct Reset(Option<Place>);
    impl Drop for Reset {
        fn drop(&mut self) {
            PLACE.set(self.0);
        }
    }
    let _reset = Reset(PLACE.replace(Some(at)));
    call()
}

/// The raw lock of a [`CheckedReentrantMutex`]: a [`Checked`] lock that is told the line of its
/// user by the typed face.
#[derive(Debug)]
pub struct CheckedReentrant<R>(Checked<R>);

impl<R: Initial> Initial for CheckedReentrant<R> {
    const INIT: Self = Self(Checked::INIT);
}

// SAFETY: all tokens are those of the lock inside, which keeps the promise.
unsafe impl<R: RawMutex<Scope = Local>> RawMutex for CheckedReentrant<R> {
    type Scope = Local;
    type Token = R::Token;
    type Condvar = ulocks_core::condvar::Sequence<Self>;

    #[track_caller]
    fn lock(&self) -> R::Token {
        self.0.lock_at(0, PLACE.get().unwrap_or(Location::caller()))
    }

    #[track_caller]
    fn try_lock(&self) -> Option<R::Token> {
        self.0.try_lock_at(PLACE.get().unwrap_or(Location::caller()))
    }

    #[track_caller]
    fn lock_until(&self, deadline: Deadline) -> Option<R::Token> {
        self.0.lock_until_at(deadline, PLACE.get().unwrap_or(Location::caller()))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self, token: R::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<R: RawMutexFair<Scope = Local>> RawMutexFair for CheckedReentrant<R> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_fair(&self, token: R::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_fair(token) };
    }
}

/// A checked mutex that its holder may lock again: the rules are those of
/// [`CheckedMutex`](crate::CheckedMutex), without that of recursion.
///
/// A guard gives shared access to the data only. A further acquisition by the holder does not wait,
/// and so adds nothing to the order of locks.
///
/// # Fairness and blocking
/// Those of the lock inside. An acquisition first tries once.
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise. If one thread
/// holds it more than `usize::MAX` times.
///
/// # Memory
/// Two words beside those of the plain lock; otherwise as [`CheckedMutex`](crate::CheckedMutex).
///
/// # Signals and forks
/// As [`CheckedMutex`](crate::CheckedMutex). In the child of a fork it is not the child's, also if
/// the parent held it.
///
/// # Examples
/// ```
/// use ulocks_debug::{ReentrantMutex, held};
///
/// let depth = ReentrantMutex::new(std::cell::Cell::new(0));
/// let outer = depth.lock();
/// depth.lock().set(1);
/// assert_eq!((outer.get(), held().locks().len()), (1, 1));
/// ```
#[repr(transparent)]
pub struct CheckedReentrantMutex<R: RawMutex<Scope = Local>, T: ?Sized>(
    api::ReentrantMutex<CheckedReentrant<R>, T>,
);

type Guard<'a, R, T> = api::ReentrantMutexGuard<'a, CheckedReentrant<R>, T>;

impl<R: RawMutex<Scope = Local>, T> CheckedReentrantMutex<R, T> {
    const fn with_origin(origin: Origin, value: T) -> Self {
        let raw = Raw::new(CheckedReentrant(Checked::with_origin(origin)));
        Self(lock_api::ReentrantMutex::from_raw(raw, ThreadId, value))
    }
}

impl<R: RawMutex<Scope = Local>, T: ?Sized> CheckedReentrantMutex<R, T> {
    #[cfg(feature = "arc_lock")]
    pub(super) fn share(self: &Arc<Self>) -> Arc<api::ReentrantMutex<CheckedReentrant<R>, T>> {
        // SAFETY: the pointer comes from `into_raw`, and the two types have one layout.
        unsafe {
            Arc::from_raw(
                Arc::into_raw(Arc::clone(self)) as *const api::ReentrantMutex<CheckedReentrant<R>, T>
            )
        }
    }

    /// Acquires the mutex, or counts one more if this thread holds it.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, R, T> {
        called_at(Location::caller(), || self.0.lock())
    }

    /// As [`lock`](Self::lock), if that needs no waiting.
    #[track_caller]
    pub fn try_lock(&self) -> Option<Guard<'_, R, T>> {
        called_at(Location::caller(), || self.0.try_lock())
    }

    /// As [`lock`](Self::lock), or gives up after `timeout`.
    #[track_caller]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<Guard<'_, R, T>> {
        called_at(Location::caller(), || self.0.try_lock_for(timeout))
    }

    /// As [`lock`](Self::lock), or gives up at `timeout`.
    #[track_caller]
    pub fn try_lock_until(&self, timeout: Instant) -> Option<Guard<'_, R, T>> {
        called_at(Location::caller(), || self.0.try_lock_until(timeout))
    }
}

wrapper!(CheckedReentrantMutex<R: RawMutex, T> of api::ReentrantMutex<CheckedReentrant<R>, T>, read by lock);
