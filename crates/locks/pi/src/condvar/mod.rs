//! [`PiCondvar`]: a notified thread waits for the mutex at once, with its priority.

pub(crate) mod raw;

pub use raw::RawPiCondvar;

use crate::mutex::{Locked, PiLockError, PiMutexGuard, PiMutexOf, RawPi, RawPiMutex, Taken, told};
use core::fmt;
use core::time::Duration;
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::PiError;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, api, const_fn};

/// A condition variable for a [`PiMutex`](crate::PiMutex): a thread that is notified waits for the
/// mutex at once, without waking up first, and lends its priority to the holder meanwhile.
///
/// A notification names the mutex, so that the condition variable need not store where it is. All
/// threads that wait at one time wait with the same mutex.
///
/// For code that is generic over mutexes there is also
/// [`api::Condvar`](ulocks_core::api::Condvar)`<RawPiMutex>`, which wakes threads that then lock by
/// themselves.
///
/// # Fairness
/// The waiter of highest priority is notified first, and among equals the thread that fell asleep
/// first. They get the mutex in the order of priority.
///
/// # Spurious wake-ups
/// A wait may end without a notification of its own if others are notified at the same time: look
/// at the condition again. No notification is lost, whichever way a wait ends, and whether or not
/// the notifier holds the mutex. Threads that wait for different conditions are notified all at
/// once, or by a holder of the mutex.
///
/// # Blocking
/// A waiter in one process that is the only one spins first, for up to 30 us by default, and then
/// sleeps in the kernel. After three spins in vain in a row waiters sleep at once, and about one
/// wait in 29 tries again. The policy `NoSpin` never spins. The spin does not look at the deadline,
/// so a timed wait may end that much later.
///
/// A notification does not wait for the mutex. It makes no system call if no thread waits, or if
/// the only waiter still spins. It sleeps if the owner of the mutex has ended, until the next one
/// has run. It sleeps for 0.1 s if the waiters wait with another mutex, and the one named is
/// contended.
///
/// # Errors
/// A wait ends with the errors of the mutex, see [`PiLockError`]; the guard is gone then, but for
/// `OwnerDied`, which returns it.
///
/// # Process-shared
/// [`PiCondvarWith`]`<Shared>`, with a mutex that is. A process that dies while it waits costs
/// later notifications a system call each.
///
/// # Signals and forks
/// Signals are handled while a thread waits; the wait goes on, or ends spuriously. It cannot be
/// [interrupted](ulocks_core::interrupt), for the reason that a `PiMutex` has. No thread waits on
/// the copy of a child of `fork`.
///
/// # Examples
/// ```
/// use ulocks_pi::{PiCondvar, PiMutex};
///
/// static READY: PiMutex<bool> = PiMutex::new(false);
/// static CHANGED: PiCondvar = PiCondvar::new();
///
/// # if cfg!(miri) { return }
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *READY.lock().unwrap() = true;
///         CHANGED.notify_one(&READY).unwrap();
///     });
///     let ready = READY.lock().unwrap();
///     let ready = CHANGED.wait_while(ready, |ready| !*ready).unwrap();
///     assert!(*ready);
/// });
/// ```
pub type PiCondvar = PiCondvarWith<Private>;

/// A [`PiCondvar`] for a [`PiMutexWith`](crate::PiMutexWith) of the same policy.
pub type PiCondvarWith<P = Private> = PiCondvarOf<RawPiMutex<P>>;

/// A condition variable for a [`PiMutexOf`] of the same mutex `L`: [`PiCondvar`], and a checked
/// one.
#[repr(transparent)]
pub struct PiCondvarOf<L: RawPi> {
    raw: RawPiCondvar<L::Policy>,
}

/// What a timed wait returns: the guard, and whether the wait timed out.
pub type PiWaitResult<'a, T, P = Private> =
    Result<(PiMutexGuard<'a, T, P>, Wakeup), PiLockError<PiMutexGuard<'a, T, P>>>;

type Guard<'a, L, T> = api::MutexGuard<'a, L, T>;
type Waited<G> = Result<(G, Wakeup), PiLockError<G>>;

impl<L: RawPi> PiCondvarOf<L> {
    const_fn! {
        /// A condition variable no thread waits on; its bytes are all zero.
        pub fn new() -> Self {
            Self { raw: RawPiCondvar::new() }
        }
    }

    /// Releases the mutex and sleeps until notified, then holds it again. May end spuriously.
    ///
    /// # Errors
    /// See [`PiLockError`].
    pub fn wait<'a, T: ?Sized>(&self, guard: Guard<'a, L, T>) -> Locked<Guard<'a, L, T>> {
        self.wait_with(guard, None).map(|(guard, _)| guard)
    }

    /// Waits for as long as `condition` holds.
    ///
    /// # Errors
    /// See [`PiLockError`]; the condition is not known then.
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: Guard<'a, L, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Locked<Guard<'a, L, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// As [`wait`](Self::wait), giving up after `timeout`.
    ///
    /// # Errors
    /// See [`PiLockError`].
    pub fn wait_for<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, L, T>,
        timeout: Duration,
    ) -> Waited<Guard<'a, L, T>> {
        self.wait_with(guard, Some(Deadline::after(timeout)))
    }

    /// As [`wait`](Self::wait), giving up at `deadline`, which may be an `Instant`, a `SystemTime`
    /// or a [`Deadline`]. The mutex is held again in any case, however long that takes.
    ///
    /// # Errors
    /// See [`PiLockError`].
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, L, T>,
        deadline: impl Into<Deadline>,
    ) -> Waited<Guard<'a, L, T>> {
        self.wait_with(guard, Some(deadline.into()))
    }

    /// Notifies one waiter, which waits for `mutex` from now on; returns how many were asleep to be
    /// notified, 0 or 1.
    ///
    /// # Errors
    /// [`PiError::OwnerGone`] or [`PiError::Deadlock`] if a waiter could not wait for the mutex,
    /// and [`PiError::Inconsistent`] if the waiters wait with another mutex. They sleep on then.
    pub fn notify_one<T: ?Sized>(&self, mutex: &PiMutexOf<L, T>) -> Result<usize, PiError> {
        self.raw.notify_one(mutex.raw().pi())
    }

    /// Notifies all waiters, which wait for `mutex` from now on; returns how many were asleep to be
    /// notified.
    ///
    /// # Errors
    /// As [`notify_one`](Self::notify_one).
    pub fn notify_all<T: ?Sized>(&self, mutex: &PiMutexOf<L, T>) -> Result<usize, PiError> {
        self.raw.notify_all(mutex.raw().pi())
    }

    fn wait_with<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, L, T>,
        deadline: Option<Deadline>,
    ) -> Waited<Guard<'a, L, T>> {
        let mut ended = (Taken::Sound, Wakeup::Notified);
        let wait = |raw: &L| {
            // SAFETY: `wait_with` calls this for the holder of the mutex.
            ended = unsafe { raw.wait(&self.raw, deadline) }?;
            Ok(())
        };
        // SAFETY: `RawPi::wait` returns `Ok` with the mutex held by the calling thread.
        let guard = unsafe { api::wait_with(guard, wait) };
        Ok((told(guard, ended.0 == Taken::Sound)?, ended.1))
    }
}

impl<L: RawPi> Default for PiCondvarOf<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: RawPi> fmt::Debug for PiCondvarOf<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("PiCondvar { .. }")
    }
}
