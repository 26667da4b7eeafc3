//! A mutex that a fork holds. So the child does not find it locked by a thread that it does not
//! have.
//!
//! The handlers of a program that were registered with `pthread_atfork` before ours are called
//! between ours, while the mutex is held: last before the fork, and first after it. What they call
//! may come to the mutex, on the very thread that has it. So that thread gets the value without
//! the lock:
//!
//! | `forks` | meaning | set by |
//! |---|---|---|
//! | 0 | no thread forks with the mutex | `release` |
//! | an address | the thread with a variable there forks, and has the mutex | the thread, in `hold` |
//!
//! # Invariants
//! 1. A thread finds its own address only if it has stored it, behind its acquisition, and has not
//!    cleared it, before its release. So the mutex is its own. In the child of the fork the copy of
//!    that thread is the only thread.
//! 2. The value is lent to one guard at a time: `is_lent`.
//!
//! Both words are `Relaxed`: what a thread concludes from them is about its own stores.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr;
use ulocks_core::api::Token;
use ulocks_core::sync::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use ulocks_unfair::{BargingMutex, BargingMutexGuard};

std::thread_local! {
    /// Its address is that of no other living thread, and the same in the child of a fork.
    static OWN: Cell<u8> = const { Cell::new(0) };
}

/// A mutex that a fork holds, and that the handlers of that fork may use.
pub struct ForkMutex<T> {
    mutex: BargingMutex<T>,
    forks: AtomicUsize,
    is_lent: AtomicBool,
}

impl<T> ForkMutex<T> {
    /// A mutex that no thread has.
    pub const fn new(value: T) -> Self {
        Self { mutex: BargingMutex::new(value), forks: AtomicUsize::new(0), is_lent: AtomicBool::new(false) }
    }

    /// Whether this thread is about to fork, or just has, and has the mutex.
    pub fn is_forking(&self) -> bool {
        self.forks.load(Relaxed) == OWN.with(|own| ptr::from_ref(own).addr())
    }

    /// Locks the mutex. If this thread forks, it has the mutex already.
    pub fn lock(&self) -> ForkGuard<'_, T> {
        let is_forking = self.is_forking();
        if is_forking {
            let is_lent = self.is_lent.swap(true, Relaxed);
            assert!(!is_lent, "a thread that forks has one guard at a time");
        }
        let guard = (!is_forking).then(|| self.mutex.lock());
        ForkGuard { of: self, guard, not_send: PhantomData }
    }

    /// Locks the mutex, if no thread has it. For signal handlers: they are lent nothing.
    pub fn try_lock(&self) -> Option<ForkGuard<'_, T>> {
        let guard = self.mutex.try_lock()?;
        Some(ForkGuard { of: self, guard: Some(guard), not_send: PhantomData })
    }

    /// This thread is about to fork, and has the mutex until it calls `release`. If it has the
    /// mutex already, nothing happens: the child of a fork may have registered its handlers again.
    pub fn hold(&self) {
        if !self.is_forking() {
            mem::forget(self.mutex.lock());
            self.forks.store(OWN.with(|own| ptr::from_ref(own).addr()), Relaxed);
        }
    }

    /// This thread has forked. If it does not have the mutex by `hold`, nothing happens.
    pub fn release(&self) {
        if self.is_forking() {
            assert!(!self.is_lent.load(Relaxed), "a guard lives on");
            self.forks.store(0, Relaxed);
            // SAFETY: `hold` has locked the mutex, on this thread; the token of it is nothing.
            unsafe { self.mutex.force_unlock(Token::new(())) };
        }
    }
}

/// The value of a [`ForkMutex`], which the thread has until this is dropped.
pub struct ForkGuard<'a, T> {
    of: &'a ForkMutex<T>,
    /// `None` if the thread forks, and is lent the value.
    guard: Option<BargingMutexGuard<'a, T>>,
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.guard {
            Some(guard) => guard,
            // SAFETY: this thread has the mutex, and no other guard: invariants 1 and 2. The value
            // lives as long as the mutex.
            None => unsafe { &*self.of.mutex.data_ptr() },
        }
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.guard {
            Some(guard) => guard,
            // SAFETY: as above, and this guard is borrowed mutably.
            None => unsafe { &mut *self.of.mutex.data_ptr() },
        }
    }
}

impl<T> Drop for ForkGuard<'_, T> {
    fn drop(&mut self) {
        if self.guard.is_none() {
            self.of.is_lent.store(false, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_forks_has_the_value_and_others_do_not() {
        let mutex = ForkMutex::new(1);
        mutex.hold();
        mutex.hold();
        *mutex.lock() += 1;
        assert!(mutex.try_lock().is_none());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!mutex.is_forking() && mutex.try_lock().is_none()));
        });
        mutex.release();
        mutex.release();
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
        assert!(!mutex.is_forking());
    }
}
