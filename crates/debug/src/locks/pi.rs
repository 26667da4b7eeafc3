//! [`CheckedPiMutex`]: data behind a checked mutex with priority inheritance, which returns errors
//! as the plain one does.

use crate::locks::checker::Checked;
use crate::locks::wrapper::wrapper;
use crate::rules::current::current;
use crate::rules::faults::TryLockError;
use crate::seen::access::Access::Exclusive;
use crate::seen::class::Origin;
use core::panic::Location;
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::{Local, PiError};
use ulocks_core::lock_api;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, api};
use ulocks_pi::{PiLockError, PiMutexOf, RawPi, RawPiCondvar, RawPiMutex, Taken};

/// Data behind a [`PiMutex`](ulocks_pi::PiMutex) that enforces the rules of a mutex; see the
/// [crate](crate).
///
/// [`PiMutex`](crate::PiMutex) is an alias of it.
///
/// # Methods
/// It dereferences to [`PiMutexOf`], whose page lists the methods: `lock`, `try_lock`,
/// `try_lock_for`, `try_lock_until`, `is_locked`, `get_mut` and more. Its condition variable is
/// [`PiCondvar`](crate::PiCondvar).
///
/// # Fairness and blocking
/// Those of the plain mutex. An acquisition first tries once.
///
/// # Errors
/// Those of the plain mutex. A thread that ends with the mutex locked is reported. The next thread
/// gets [`OwnerDied`](PiLockError::OwnerDied) or `OwnerGone` then.
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise. If the policy goes
/// on after a recursion or a deadlock, the acquisition returns `Deadlock`.
///
/// # Memory
/// As [`CheckedMutex`](crate::CheckedMutex).
///
/// # Signals and forks
/// As [`CheckedMutex`](crate::CheckedMutex). The child of a fork does not hold what its parent
/// holds, as with the plain mutex, although the list of the checker goes on with it.
///
/// # Examples
/// ```
/// use ulocks_debug::{PiCondvar, PiMutex};
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
#[repr(transparent)]
pub struct CheckedPiMutex<P: Policy<Scope = Local>, T: ?Sized>(PiMutexOf<Checked<RawPiMutex<P>>, T>);

type Guard<'a, P, T> = api::MutexGuard<'a, Checked<RawPiMutex<P>>, T>;

impl<P: Policy<Scope = Local>, T> CheckedPiMutex<P, T> {
    const fn with_origin(origin: Origin, value: T) -> Self {
        let raw = api::Raw::new(Checked::with_origin(origin));
        Self(PiMutexOf::from_infallible(lock_api::Mutex::from_raw(raw, value)))
    }
}

impl<P: Policy<Scope = Local>, T: ?Sized> CheckedPiMutex<P, T> {
    /// As [`CheckedMutex::lock_nested`](crate::CheckedMutex::lock_nested).
    ///
    /// # Errors
    /// As [`PiMutexOf::lock`].
    ///
    /// # Panics
    /// If the subclass is greater than 7.
    #[track_caller]
    pub fn lock_nested(&self, subclass: u8) -> Result<Guard<'_, P, T>, PiLockError<Guard<'_, P, T>>> {
        let taken = self.0.raw().acquire_in(subclass, None);
        // SAFETY: it is the outcome of an acquisition of this mutex.
        unsafe { self.0.guard(taken) }
    }

    /// As [`CheckedMutex::try_lock_checked`](crate::CheckedMutex::try_lock_checked).
    ///
    /// # Errors
    /// The report, or that the mutex is held.
    ///
    /// # Panics
    /// If the kernel refuses, or the owner before has ended without unlocking.
    #[track_caller]
    pub fn try_lock_checked(&self) -> Result<Guard<'_, P, T>, TryLockError> {
        self.0.raw().try_checked()?;
        // SAFETY: the lock is held by this thread, and this is the only guard made of it.
        Ok(unsafe { self.0.as_infallible().make_guard_unchecked(api::Token::new(())) })
    }

    /// The name of its class, or the name of the lock's type.
    #[track_caller]
    pub fn name(&self) -> &'static str {
        self.0.raw().0.class(Location::caller()).name()
    }
}

wrapper!(CheckedPiMutex<R: Policy, T> of PiMutexOf<Checked<RawPiMutex<R>>, T>);

impl<P: Policy<Scope = Local>> Checked<RawPiMutex<P>> {
    #[track_caller]
    fn acquire_in(&self, subclass: u8, deadline: Option<Deadline>) -> Result<Taken, PiError> {
        let (at, attempt) = (Location::caller(), RawPiMutex::try_acquire);
        let wait = |raw: &RawPiMutex<P>| raw.acquire(deadline);
        if deadline.is_none() {
            return self.0.acquire((Exclusive, subclass), at, attempt, wait);
        }
        let taken =
            self.0.attempt(Exclusive, at, attempt, Some(|raw: &RawPiMutex<P>| wait(raw).map(Some)))?;
        Ok(taken.expect("what ends without the mutex is an error"))
    }
}

// SAFETY: what is taken is taken from the mutex inside, as its `RawPi` says. A panic happens before
// an acquisition or a release. What is safe to call here acquires the mutex or leaves it as it is.
unsafe impl<P: Policy<Scope = Local>> RawPi for Checked<RawPiMutex<P>> {
    type Policy = P;

    fn pi(&self) -> &RawPiMutex<P> {
        self.inner()
    }

    #[track_caller]
    fn acquire(&self, deadline: Option<Deadline>) -> Result<Taken, PiError> {
        self.acquire_in(0, deadline)
    }

    #[track_caller]
    fn try_acquire(&self) -> Result<Option<Taken>, PiError> {
        let wait = None::<fn(&RawPiMutex<P>) -> Result<Option<Taken>, PiError>>;
        self.0.attempt(Exclusive, Location::caller(), RawPiMutex::try_acquire, wait)
    }

    /// The thread holds the mutex again as it did before. The kernel gives it the mutex, so the
    /// checker does not see from when on it waits for it.
    #[track_caller]
    unsafe fn wait(
        &self,
        condvar: &RawPiCondvar<P>,
        deadline: Option<Deadline>,
    ) -> Result<(Taken, Wakeup), PiError> {
        // Whether it may does not matter: the mutex releases nothing that its thread does not hold.
        let (_, held) = self.leave_to_wait();
        // SAFETY: the caller's promise.
        let ended = unsafe { condvar.wait(self.inner(), deadline) }?;
        match held.or_else(|| Some((current()?, self.0.asked(Exclusive, 0, Location::caller())))) {
            Some((me, asked)) => self.0.enter(me, asked),
            None => self.0.untracked(Exclusive, ()),
        }
        Ok(ended)
    }
}
