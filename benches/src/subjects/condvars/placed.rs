//! A lock of the benches' registry over a value, with pthread's condition variable or with a
//! sequence word.
//!
//! Such a lock stays where it was made, so the mutex is a box. A thread that uses it follows one
//! pointer more than with the others, which is in its cache.

use super::Monitor;
use crate::subjects::locks::{Lock, Posix, Scope};
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A lock and what it protects.
pub struct Guarded<L, T> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes from thread to thread with the lock, one at a time, and is `Send`; the
// lock is `Sync`. A lock of the registry may be dropped by another thread than its maker
// it: none has anything of a thread's.
unsafe impl<L: Lock, T: Send> Send for Guarded<L, T> {}
// SAFETY: as above.
unsafe impl<L: Lock, T: Send> Sync for Guarded<L, T> {}

impl<L: Lock, T> Guarded<L, T> {
    fn new(value: T) -> Result<Box<Self>> {
        let mut place: Box<MaybeUninit<Self>> = Box::new_uninit();
        let to = place.as_mut_ptr();
        // SAFETY: `to` is valid for writes and aligned, hence its fields are. The lock stays in
        // this box.
        unsafe {
            L::place(&raw mut (*to).lock, Scope::Threads)?;
            (&raw mut (*to).value).write(UnsafeCell::new(value));
        }
        // SAFETY: both fields have been written.
        Ok(unsafe { place.assume_init() })
    }

    #[inline]
    fn lock(&self) -> PlacedGuard<'_, L, T> {
        PlacedGuard { _held: self.lock.acquire(), of: self }
    }
}

/// Holds a [`Guarded`].
pub struct PlacedGuard<'a, L: Lock, T> {
    _held: L::Held<'a>,
    of: &'a Guarded<L, T>,
}

impl<L: Lock, T> Deref for PlacedGuard<'_, L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard's thread holds the lock, so no thread has the value for itself.
        unsafe { &*self.of.value.get() }
    }
}

impl<L: Lock, T> DerefMut for PlacedGuard<'_, L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard's thread holds the lock, and the guard is borrowed for as long as the
        // value is.
        unsafe { &mut *self.of.value.get() }
    }
}

/// glibc's, with a mutex of one [`KIND`](crate::subjects::locks::Posix).
#[derive(Debug)]
pub struct Pthread<const KIND: u8>;

/// A `pthread_cond_t` that measures by the monotonic clock.
#[derive(Debug)]
pub struct PthreadCondvar(Box<UnsafeCell<libc::pthread_cond_t>>);

// SAFETY: a condition variable is made to be called from several threads; only its functions touch
// it.
unsafe impl Send for PthreadCondvar {}
// SAFETY: as above.
unsafe impl Sync for PthreadCondvar {}

impl Drop for PthreadCondvar {
    fn drop(&mut self) {
        // SAFETY: `condvar` initialised it, and `&mut self` says that no thread uses it.
        unsafe { libc::pthread_cond_destroy(self.0.get()) };
    }
}

impl<const KIND: u8> Monitor for Pthread<KIND> {
    type Mutex<T: Send + 'static> = Box<Guarded<Posix<KIND>, T>>;
    type Guard<'a, T: Send + 'static> = PlacedGuard<'a, Posix<KIND>, T>;
    type Condvar = PthreadCondvar;

    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
        Guarded::new(value)
    }

    fn condvar() -> Result<PthreadCondvar> {
        let condvar = Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        let mut attr = MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: `attr` is writable, is initialised by the first call and destroyed by the last;
        // the condition variable is writable, no thread uses it, and it stays in its box.
        let rc = unsafe {
            libc::pthread_condattr_init(attr);
            libc::pthread_condattr_setclock(attr, libc::CLOCK_MONOTONIC);
            let rc = libc::pthread_cond_init(condvar.get(), attr);
            libc::pthread_condattr_destroy(attr);
            rc
        };
        ensure!(rc == 0, "pthread_cond_init: {}", io::Error::from_raw_os_error(rc));
        Ok(PthreadCondvar(condvar))
    }

    #[inline]
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
        mutex.lock()
    }

    #[inline]
    fn wait<'a, T: Send + 'static>(
        condvar: &PthreadCondvar,
        guard: Self::Guard<'a, T>,
    ) -> Self::Guard<'a, T> {
        // SAFETY: both are initialised and stay where they are, and this thread holds the mutex. It
        // does so again when the call returns, so the guard stands for it as before.
        let rc = unsafe { libc::pthread_cond_wait(condvar.0.get(), guard.of.lock.raw()) };
        assert!(rc == 0, "pthread_cond_wait: {}", io::Error::from_raw_os_error(rc));
        guard
    }

    #[inline]
    fn wait_for<'a, T: Send + 'static>(
        condvar: &PthreadCondvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool) {
        let deadline = crate::run::threads::clock_time(libc::CLOCK_MONOTONIC) + timeout;
        let deadline =
            libc::timespec { tv_sec: deadline.as_secs() as _, tv_nsec: deadline.subsec_nanos() as _ };
        // SAFETY: as in `wait`; the deadline is initialised.
        let rc = unsafe { libc::pthread_cond_timedwait(condvar.0.get(), guard.of.lock.raw(), &deadline) };
        let ended = rc == libc::ETIMEDOUT;
        assert!(rc == 0 || ended, "pthread_cond_timedwait: {}", io::Error::from_raw_os_error(rc));
        (guard, ended)
    }

    #[inline]
    fn notify_one<T: Send + 'static>(condvar: &PthreadCondvar, _: &Self::Mutex<T>) {
        // SAFETY: it is initialised and stays where it is.
        unsafe { libc::pthread_cond_signal(condvar.0.get()) };
    }

    #[inline]
    fn notify_all<T: Send + 'static>(condvar: &PthreadCondvar, _: &Self::Mutex<T>) {
        // SAFETY: it is initialised and stays where it is.
        unsafe { libc::pthread_cond_broadcast(condvar.0.get()) };
    }
}

/// Any lock of the registry with a [`Sequence`], for peers that have no condition variable of their
/// own.
#[derive(Debug)]
pub struct WithSequence<L>(PhantomData<L>);

/// The plainest condition variable on a futex, as std has it: a notification raises a number and
/// wakes, and a waiter sleeps while the number is what it read under the mutex.
#[derive(Debug, Default)]
pub struct Sequence(AtomicU32);

impl Sequence {
    /// Sleeps while the number is `seen`; says whether the time ran out.
    fn sleep(&self, seen: u32, timeout: Option<Duration>) -> bool {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return true;
            }
            let left = left.map(|left| libc::timespec {
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos() as _,
            });
            let limit = left.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the word lives, and the limit is null or lives until the call returns.
            unsafe {
                let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, seen, limit)
            };
            // Relaxed: what a waiter sees of the notifying thread's work is the mutex's business.
            if self.0.load(Relaxed) != seen {
                return false;
            }
        }
    }

    fn notify(&self, most: libc::c_int) {
        self.0.fetch_add(1, Relaxed);
        // SAFETY: a wake needs the address alone.
        unsafe {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, most)
        };
    }

    fn wait<'a, L: Lock, T>(
        &self,
        guard: PlacedGuard<'a, L, T>,
        timeout: Option<Duration>,
    ) -> (PlacedGuard<'a, L, T>, bool) {
        let (of, seen) = (guard.of, self.0.load(Relaxed));
        drop(guard);
        let timed_out = self.sleep(seen, timeout);
        (of.lock(), timed_out)
    }
}

impl<L: Lock> Monitor for WithSequence<L> {
    type Mutex<T: Send + 'static> = Box<Guarded<L, T>>;
    type Guard<'a, T: Send + 'static> = PlacedGuard<'a, L, T>;
    type Condvar = Sequence;

    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
        Guarded::new(value)
    }

    fn condvar() -> Result<Sequence> {
        Ok(Sequence::default())
    }

    #[inline]
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
        mutex.lock()
    }

    #[inline]
    fn wait<'a, T: Send + 'static>(condvar: &Sequence, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T> {
        condvar.wait(guard, None).0
    }

    #[inline]
    fn wait_for<'a, T: Send + 'static>(
        condvar: &Sequence,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool) {
        condvar.wait(guard, Some(timeout))
    }

    #[inline]
    fn notify_one<T: Send + 'static>(condvar: &Sequence, _: &Self::Mutex<T>) {
        condvar.notify(1);
    }

    #[inline]
    fn notify_all<T: Send + 'static>(condvar: &Sequence, _: &Self::Mutex<T>) {
        condvar.notify(libc::c_int::MAX);
    }
}
