//! The condition variable on the machine: lock_api's `Condvar` over ours.

use super::{MutexGuard, Raw, RawCondvar, Token};
use crate::lock::condvar::Wakeup;
use crate::lock::traits::RawMutex;
use crate::sys::time::Deadline;
use core::cell::Cell;
use core::mem;
use core::ptr;
use core::time::Duration;
use std::time::Instant;

/// A condition variable for a [`Mutex`](super::Mutex) of the same raw lock.
pub type Condvar<L> = lock_api::Condvar<RawCondvar<L>>;

impl<L: RawMutex> RawCondvar<L> {
    /// # Safety
    /// The caller holds `mutex`, and `guard` is the token of that acquisition.
    unsafe fn wait_with(
        &self,
        mutex: &Raw<L>,
        guard: &mut Token<L::Token>,
        deadline: Option<Deadline>,
    ) -> bool {
        // If the wait panics there is no telling whether the mutex is held, and a guard would say
        // it is.
        let armed = Abort;
        // SAFETY: the token is consumed here and a new one written below; between the two no code
        // sees `guard`, because an unwinding aborts.
        let token = unsafe { ptr::read(guard) };
        // SAFETY: the caller holds `mutex` by this token.
        let (token, wakeup) = unsafe { self.inner().wait(mutex.inner(), token.into_inner(), deadline) };
        // SAFETY: `guard` is a valid place whose value was moved out above.
        unsafe { ptr::write(guard, Token::new(token)) };
        mem::forget(armed);
        wakeup == Wakeup::TimedOut
    }
}

/// Waits on `condvar` until `deadline`, which lock_api's methods do not take. Whether it was
/// notified, perhaps spuriously.
#[track_caller]
pub(crate) fn wait_until<L: RawMutex, T: ?Sized>(
    condvar: &Condvar<L>,
    guard: &mut MutexGuard<'_, L, T>,
    deadline: Deadline,
) -> bool {
    let once = lock_api::Condvar::<Once<'_, L>>::new();
    once.raw().of.set(Some((condvar.raw(), deadline)));
    once.wait(guard);
    !once.raw().timed_out.get()
}

/// A wait on another condition variable, until a deadline: in this shape lock_api gives it the
/// token of the guard.
struct Once<'a, L: RawMutex> {
    of: Cell<Option<(&'a RawCondvar<L>, Deadline)>>,
    timed_out: Cell<bool>,
}

// SAFETY: `wait` is that of the condition variable that it is of, with its promises. Without one it
// gives up nothing: it returns holding the mutex, as after a spurious wake-up.
unsafe impl<L: RawMutex> lock_api::RawCondvar for Once<'_, L> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self { of: Cell::new(None), timed_out: Cell::new(false) };

    type RawMutex = Raw<L>;

    #[inline]
    unsafe fn wait(&self, mutex: &Raw<L>, guard: &mut Token<L::Token>) {
        if let Some((condvar, deadline)) = self.of.get() {
            // SAFETY: the caller's promise.
            self.timed_out.set(unsafe { condvar.wait_with(mutex, guard, Some(deadline)) });
        }
    }

    fn notify_one(&self) -> bool {
        false
    }

    fn notify_all(&self) -> usize {
        0
    }
}

/// Ends the process when dropped.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

// SAFETY: `wait` gives up the mutex and begins to wait in one step with respect to notifications,
// and returns holding it; the guard is restored or the process ends.
unsafe impl<L: RawMutex> lock_api::RawCondvar for RawCondvar<L> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();

    type RawMutex = Raw<L>;

    #[inline]
    unsafe fn wait(&self, mutex: &Raw<L>, guard: &mut Token<L::Token>) {
        // SAFETY: the caller's promise.
        unsafe { self.wait_with(mutex, guard, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.inner().notify_one();
        false
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.inner().notify_all();
        0
    }
}

// SAFETY: as above; a wait that reports a timeout has outlasted its deadline.
unsafe impl<L: RawMutex> lock_api::RawCondvarTimed for RawCondvar<L> {
    #[inline]
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    #[inline]
    unsafe fn wait_until(&self, mutex: &Raw<L>, guard: &mut Token<L::Token>, timeout: &Instant) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.wait_with(mutex, guard, Some(Deadline::at(*timeout))) }
    }

    #[inline]
    unsafe fn wait_for(&self, mutex: &Raw<L>, guard: &mut Token<L::Token>, timeout: &Duration) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.wait_with(mutex, guard, Some(Deadline::after(*timeout))) }
    }
}
