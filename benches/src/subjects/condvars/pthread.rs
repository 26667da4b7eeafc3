//! glibc's condition variable with its normal mutex.
//!
//! Both are boxed: they stay where they were made. A thread that uses them follows one pointer more
//! than with the others, which is in its cache.

use super::{Monitor, State};
use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// The pair.
#[derive(Debug)]
pub struct Pthread;

/// A `pthread_mutex_t` and what it protects.
pub struct Mutex(Box<(UnsafeCell<libc::pthread_mutex_t>, UnsafeCell<State>)>);

// SAFETY: the value is `Send` and goes from thread to thread with the mutex, one at a time. The
// mutex is made to be called from several threads, and may be destroyed by any of them.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

impl Default for Mutex {
    fn default() -> Self {
        Self(Box::new((UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), UnsafeCell::default())))
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: the mutex is initialised, and `&mut self` says that no thread uses it.
        unsafe { libc::pthread_mutex_destroy(self.0.0.get()) };
    }
}

/// Holds a [`Mutex`], by the thread that acquired it.
pub struct Guard<'a>(&'a Mutex, PhantomData<*mut ()>);

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the mutex is initialised and has not moved, and this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.0.0.get()) };
    }
}

impl Deref for Guard<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        // SAFETY: this thread holds the mutex, so no other has the value.
        unsafe { &*self.0.0.1.get() }
    }
}

impl DerefMut for Guard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: this thread holds the mutex, and the guard is borrowed as long as the value is.
        unsafe { &mut *self.0.0.1.get() }
    }
}

/// A `pthread_cond_t`.
pub struct Condvar(Box<UnsafeCell<libc::pthread_cond_t>>);

// SAFETY: a condition variable is made to be called from several threads; only its functions touch
// it.
unsafe impl Send for Condvar {}
// SAFETY: as above.
unsafe impl Sync for Condvar {}

impl Default for Condvar {
    fn default() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER)))
    }
}

impl Drop for Condvar {
    fn drop(&mut self) {
        // SAFETY: it is initialised, and `&mut self` says that no thread uses it.
        unsafe { libc::pthread_cond_destroy(self.0.get()) };
    }
}

impl Monitor for Pthread {
    const COUNTABLE: bool = false;

    type Mutex = Mutex;
    type Guard<'a> = Guard<'a>;
    type Condvar = Condvar;

    #[inline]
    fn lock(mutex: &Mutex) -> Guard<'_> {
        // SAFETY: the mutex is initialised and stays in its box.
        let rc = unsafe { libc::pthread_mutex_lock(mutex.0.0.get()) };
        assert!(rc == 0, "pthread_mutex_lock: {}", io::Error::from_raw_os_error(rc));
        Guard(mutex, PhantomData)
    }

    #[inline]
    fn wait<'a>(condvar: &Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a> {
        // SAFETY: both are initialised and stay in their boxes, and this thread holds the mutex. It
        // does so again when the call returns, so the guard stands for it as before.
        let rc = unsafe { libc::pthread_cond_wait(condvar.0.get(), guard.0.0.0.get()) };
        assert!(rc == 0, "pthread_cond_wait: {}", io::Error::from_raw_os_error(rc));
        guard
    }

    #[inline]
    fn notify_one(condvar: &Condvar, _: &Mutex) {
        // SAFETY: it is initialised and stays in its box.
        unsafe { libc::pthread_cond_signal(condvar.0.get()) };
    }

    #[inline]
    fn notify_all(condvar: &Condvar, _: &Mutex) {
        // SAFETY: it is initialised and stays in its box.
        unsafe { libc::pthread_cond_broadcast(condvar.0.get()) };
    }
}
