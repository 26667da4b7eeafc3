//! Waits that a signal handler ends: `lock_interruptible` and its kin, and how they end.
//!
//! A thread that waits for a lock does not see that a handler has run, and goes on waiting. The
//! methods here give up instead. They are `mutex_lock_interruptible` and `down_interruptible` of
//! the Linux kernel. Each has a form with a deadline, an `Instant` or a [`Deadline`].
//!
//! | trait | methods | of |
//! |---|---|---|
//! | [`InterruptibleMutex`] | `lock_interruptible` | mutexes |
//! | [`InterruptibleRwLock`] | `read_interruptible`, `write_interruptible` | reader-writer locks |
//! | [`InterruptibleUpgrade`] | `upgradable_read_interruptible` | those with upgrades |
//! | [`InterruptibleCondvar`] | `wait_interruptible` | condition variables of any mutex |
//!
//! A semaphore has `acquire_interruptible` among its own methods.
//!
//! # Fairness
//! That of a wait with a deadline. A waiter that is interrupted leaves as one that times out, and
//! the waiters behind it move up.
//!
//! # Blocking
//! A lock that can be had at once is acquired, as without a signal. A thread that waits spins
//! before it sleeps, and a handler that runs meanwhile does not end the spin.
//!
//! # Errors
//! [`Interrupted`] without a deadline, [`WaitError`] with one. The lock is not held then. If a
//! thread gets the lock and a signal at the same moment, it has the lock.
//!
//! # Process-shared
//! As in one process.
//!
//! # Signals and forks
//! Any handler ends the wait, also one that was installed with `SA_RESTART`. A signal without a
//! handler, or that the thread blocks, does not.
//!
//! Only a handler that runs *while the thread sleeps* ends the wait. One that runs a moment before
//! the thread goes to sleep is not noticed, as with `pause(2)`. So a sender that must not fail
//! repeats the signal until the thread has answered.
//!
//! # Locks without
//! A lock implements [`RawInterruptible`], or it does not have these methods. `PiMutex` and
//! `PiCondvar` sleep in the kernel's lock with priority inheritance, which begins the wait again
//! after each handler. `ByteMutex` sleeps in `parking_lot_core`, which does the same. The robust
//! locks sleep on several futexes at once, where only handlers without `SA_RESTART` would be seen.
//! An upgrade (`RwLockUpgradableReadGuard::upgrade`) has no such form.
//!
//! # Examples
//! A thread waits for a lock until the lock is free or the user has pressed Ctrl-C:
//! ```
//! use ulocks_core::api::Mutex;
//! use ulocks_core::interrupt::{InterruptibleMutex, Interrupted, WaitError};
//! use ulocks_core::raw::{RawInterruptible, RawMutex};
//! use ulocks_core::time::Deadline;
//! # use std::time::Duration;
//!
//! fn add<L: RawMutex + RawInterruptible>(sum: &Mutex<L, u32>, amount: u32) -> Result<(), Interrupted> {
//!     *sum.lock_interruptible()? += amount;
//!     Ok(())
//! }
//!
//! fn add_soon<L: RawMutex + RawInterruptible>(sum: &Mutex<L, u32>, amount: u32) -> Result<(), WaitError> {
//!     *sum.lock_interruptible_until(Deadline::after(Duration::from_millis(1)))? += amount;
//!     Ok(())
//! }
//! # // A lock to show it with; lock crates have better ones.
//! # pub struct RawLock(ulocks_core::futex::Futex<ulocks_core::futex::Local>);
//! # use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
//! # use ulocks_core::futex::Waited;
//! # ulocks_core::initial!([] RawLock = Self(ulocks_core::futex::Futex::new(0)));
//! # // SAFETY: the exchange of 0 for 1 admits one holder; acquire and release order them.
//! # unsafe impl RawMutex for RawLock {
//! #     type Scope = ulocks_core::futex::Local;
//! #     type Token = ();
//! #     type Condvar = ulocks_core::condvar::Sequence<Self>;
//! #     fn lock(&self) { while self.try_lock().is_none() { self.0.wait(1, None); } }
//! #     fn try_lock(&self) -> Option<()> { self.0.compare_exchange(0, 1, Acquire, Relaxed).ok().map(drop) }
//! #     fn lock_until(&self, deadline: Deadline) -> Option<()> {
//! #         while self.try_lock().is_none() {
//! #             if self.0.wait(1, Some(deadline)) == Waited::TimedOut { return None }
//! #         }
//! #         Some(())
//! #     }
//! #     unsafe fn unlock(&self, (): ()) { self.0.store(0, Release); self.0.key().wake(1); }
//! #     fn is_locked(&self) -> bool { self.0.load(Relaxed) == 1 }
//! # }
//! # impl RawInterruptible for RawLock {}
//!
//! let sum: Mutex<RawLock, u32> = Mutex::new(0);
//! assert_eq!(add(&sum, 2), Ok(()));
//! let held = sum.lock();
//! assert_eq!(add_soon(&sum, 2), Err(WaitError::TimedOut));
//! drop(held);
//! assert_eq!(add_soon(&sum, 2), Ok(()));
//! assert_eq!(*sum.lock(), 4);
//! ```

use crate::lock::api::{
    self, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use crate::lock::traits::{RawInterruptible, RawMutex, RawRwLock, RawRwLockUpgrade};
use crate::sys::time::Deadline;
use core::convert::Infallible;
use core::error::Error;
use core::fmt;

const INTERRUPTED: &str = "a signal handler ran while the thread waited; see what it was, and try again";

/// A signal handler ran while the thread slept. Nothing was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTERRUPTED)
    }
}

impl Error for Interrupted {}

/// Why a wait that can be interrupted ended before its time. Nothing was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitError {
    /// The deadline has passed.
    TimedOut,
    /// A signal handler ran while the thread slept, and the deadline has not passed.
    Interrupted,
}

impl WaitError {
    /// Why a wait until `deadline` ended: it has timed out if that has passed, and was interrupted
    /// otherwise.
    #[must_use]
    pub fn at(deadline: Deadline) -> Self {
        if deadline.has_passed() { Self::TimedOut } else { Self::Interrupted }
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline passed; wait longer, or go on without",
            Self::Interrupted => INTERRUPTED,
        })
    }
}

impl Error for WaitError {}

impl From<Interrupted> for WaitError {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// Without a limit.
const UNTIL_A_SIGNAL: Deadline = Deadline::NEVER.interruptible();

mod sealed {
    use crate::lock::api::{Condvar, Mutex, RwLock};
    use crate::lock::traits::{RawMutex, RawRwLock};

    pub trait Sealed {}
    impl<L: RawMutex, T: ?Sized> Sealed for Mutex<L, T> {}
    impl<L: RawRwLock, T: ?Sized> Sealed for RwLock<L, T> {}
    impl<L: RawMutex> Sealed for Condvar<L> {}
}

/// Acquisitions of a [`Mutex`] that a signal handler ends. What they have in common is told in the
/// [module](self).
pub trait InterruptibleMutex: sealed::Sealed {
    /// The lock without its data.
    type Lock: RawMutex;
    /// What the lock protects.
    type Data: ?Sized;

    /// Acquires the lock, or gives up when a signal handler runs while the thread sleeps.
    ///
    /// # Errors
    /// If a handler has run.
    #[track_caller]
    fn lock_interruptible(&self) -> Result<MutexGuard<'_, Self::Lock, Self::Data>, Interrupted>;

    /// As [`lock_interruptible`](Self::lock_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    #[track_caller]
    fn lock_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<MutexGuard<'_, Self::Lock, Self::Data>, WaitError>;
}

/// Acquisitions of an [`RwLock`] that a signal handler ends. What they have in common is told in
/// the [module](self).
pub trait InterruptibleRwLock: sealed::Sealed {
    /// The lock without its data.
    type Lock: RawRwLock;
    /// What the lock protects.
    type Data: ?Sized;

    /// Acquires the lock for reading, or gives up when a signal handler runs while the thread
    /// sleeps.
    ///
    /// # Errors
    /// If a handler has run.
    #[track_caller]
    fn read_interruptible(&self) -> Result<RwLockReadGuard<'_, Self::Lock, Self::Data>, Interrupted>;

    /// As [`read_interruptible`](Self::read_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    #[track_caller]
    fn read_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<RwLockReadGuard<'_, Self::Lock, Self::Data>, WaitError>;

    /// Acquires the lock for writing, or gives up when a signal handler runs while the thread
    /// sleeps.
    ///
    /// # Errors
    /// If a handler has run.
    #[track_caller]
    fn write_interruptible(&self) -> Result<RwLockWriteGuard<'_, Self::Lock, Self::Data>, Interrupted>;

    /// As [`write_interruptible`](Self::write_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    #[track_caller]
    fn write_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<RwLockWriteGuard<'_, Self::Lock, Self::Data>, WaitError>;
}

/// Acquisitions of an [`RwLock`] for reading and perhaps writing that a signal handler ends. What
/// they have in common is told in the [module](self).
pub trait InterruptibleUpgrade: InterruptibleRwLock<Lock: RawRwLockUpgrade> {
    /// Acquires the lock for reading and perhaps writing later, or gives up when a signal handler
    /// runs while the thread sleeps.
    ///
    /// # Errors
    /// If a handler has run.
    #[track_caller]
    fn upgradable_read_interruptible(
        &self,
    ) -> Result<RwLockUpgradableReadGuard<'_, Self::Lock, Self::Data>, Interrupted>;

    /// As [`upgradable_read_interruptible`](Self::upgradable_read_interruptible), giving up also at
    /// `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    #[track_caller]
    fn upgradable_read_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<RwLockUpgradableReadGuard<'_, Self::Lock, Self::Data>, WaitError>;
}

/// Waits on a [`Condvar`] that a signal handler ends. What they have in common is told in the
/// [module](self).
///
/// Only the wait for a notification is ended. The mutex is acquired again, however long that takes
/// and whatever the mutex: it need not be interruptible itself. A notification is not lost by an
/// interruption at the same moment.
pub trait InterruptibleCondvar: sealed::Sealed {
    /// The lock of the mutexes.
    type Lock: RawMutex;

    /// Releases the mutex and sleeps until notified or until a signal handler runs, then acquires
    /// the mutex again. May end spuriously.
    ///
    /// # Errors
    /// If a handler has run. The mutex is held all the same.
    #[track_caller]
    fn wait_interruptible<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Self::Lock, T>,
    ) -> Result<(), Interrupted>;

    /// As [`wait_interruptible`](Self::wait_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run. The mutex is held all the same.
    #[track_caller]
    fn wait_interruptible_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Self::Lock, T>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), WaitError>;
}

/// The two forms of an acquisition: `try` and `until` of the raw lock, made a guard by `guard`. No
/// closure stands between the user and the raw lock: it would be the caller that the raw lock sees.
macro_rules! acquisitions {
    ($form:ident, $form_until:ident, $Guard:ident, $try:ident, $until:ident, $guard:path) => {
        #[inline]
        #[track_caller]
        fn $form(&self) -> Result<$Guard<'_, L, T>, Interrupted> {
            // SAFETY: the lock is acquired, which disturbs no guard.
            let raw = unsafe { self.raw() }.inner();
            // The clock is not read if there is nothing to wait for.
            let token = match raw.$try() {
                None => raw.$until(UNTIL_A_SIGNAL),
                token => token,
            };
            // SAFETY: the lock was acquired above with this token, which makes no other guard.
            token.map(|token| unsafe { $guard(self, token) }).ok_or(Interrupted)
        }

        #[track_caller]
        fn $form_until(&self, deadline: impl Into<Deadline>) -> Result<$Guard<'_, L, T>, WaitError> {
            let deadline = deadline.into();
            // SAFETY: as above.
            let raw = unsafe { self.raw() }.inner();
            let token = match raw.$try() {
                None => raw.$until(deadline.interruptible()),
                token => token,
            };
            // SAFETY: as above.
            token.map(|token| unsafe { $guard(self, token) }).ok_or_else(|| WaitError::at(deadline))
        }
    };
}

/// # Safety
/// As [`api::lock_with`], whose `acquire` has returned the token already.
#[track_caller]
unsafe fn mutex_guard<L: RawMutex, T: ?Sized>(mutex: &Mutex<L, T>, token: L::Token) -> MutexGuard<'_, L, T> {
    // SAFETY: the caller's promise.
    match unsafe { api::lock_with(mutex, |_| Ok::<_, Infallible>(token)) } {
        Ok(guard) => guard,
    }
}

/// # Safety
/// As [`api::read_with`], whose `acquire` has returned the token already.
#[track_caller]
unsafe fn read_guard<L: RawRwLock, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::ReadToken,
) -> RwLockReadGuard<'_, L, T> {
    // SAFETY: the caller's promise.
    match unsafe { api::read_with(rwlock, |_| Ok::<_, Infallible>(token)) } {
        Ok(guard) => guard,
    }
}

impl<L: RawMutex + RawInterruptible, T: ?Sized> InterruptibleMutex for Mutex<L, T> {
    type Lock = L;
    type Data = T;

    acquisitions!(
        lock_interruptible,
        lock_interruptible_until,
        MutexGuard,
        try_lock,
        lock_until,
        mutex_guard
    );
}

impl<L: RawRwLock + RawInterruptible, T: ?Sized> InterruptibleRwLock for RwLock<L, T> {
    type Lock = L;
    type Data = T;

    acquisitions!(
        read_interruptible,
        read_interruptible_until,
        RwLockReadGuard,
        try_read,
        read_until,
        read_guard
    );
    acquisitions!(
        write_interruptible,
        write_interruptible_until,
        RwLockWriteGuard,
        try_write,
        write_until,
        api::write_guard
    );
}

impl<L: RawRwLockUpgrade + RawInterruptible, T: ?Sized> InterruptibleUpgrade for RwLock<L, T> {
    acquisitions!(
        upgradable_read_interruptible,
        upgradable_read_interruptible_until,
        RwLockUpgradableReadGuard,
        try_upgradable,
        upgradable_until,
        api::upgradable_guard
    );
}

impl<L: RawMutex> InterruptibleCondvar for Condvar<L> {
    type Lock = L;

    #[track_caller]
    fn wait_interruptible<T: ?Sized>(&self, guard: &mut MutexGuard<'_, L, T>) -> Result<(), Interrupted> {
        if api::wait_until(self, guard, UNTIL_A_SIGNAL) { Ok(()) } else { Err(Interrupted) }
    }

    #[track_caller]
    fn wait_interruptible_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, L, T>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), WaitError> {
        let deadline = deadline.into();
        let notified = api::wait_until(self, guard, deadline.interruptible());
        if notified { Ok(()) } else { Err(WaitError::at(deadline)) }
    }
}
