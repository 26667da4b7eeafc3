//! [`Mutex`]: mutual exclusion between processes, of which any may be killed at any time.

#[doc(hidden)]
pub mod raw;

pub use raw::{Acquired, Refused};

use crate::robust::RawRobust;
use crate::robust::health::{CONSISTENT, DIRTY, NOT_RECOVERABLE};
use crate::slots::Member;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use raw::RawMutex;
use ulocks_core::sync::Ordering::Relaxed;
#[cfg(regions)]
use ulocks_core::sync::Ordering::Release;
use ulocks_core::sync::{AtomicU32, UnsafeCell};
use ulocks_core::time::Deadline;

/// Mutual exclusion around a `T` between processes: if a holder dies, the next one gets the mutex,
/// and is told. Twelve bytes beside the data.
///
/// Each thread that uses it takes part in the region in which it lies (`Region::with_member`), and
/// passes its [`Member`].
///
/// # Fairness
/// None. An arriving thread takes a free mutex past the waiters. A release wakes the waiter that
/// has slept longest since its last look.
///
/// # Blocking
/// Uncontended, an acquisition is one compare-exchange, and so is a release. Otherwise the caller
/// spins for some microseconds, unless it is bound to the holder's CPU. Then it sleeps in the
/// kernel (`futex_waitv`) until the mutex is released or its holder dies. It looks again each 200
/// ms. If the kernel lacks the call or forbids it, a waiter learns of a death by these looks only.
/// So it does if a holder that has slept for the mutex acquires or releases a robust mutex of the C
/// library, and then dies.
///
/// # Errors
/// [`LockError::OwnerDied`] has the guard: the last holder died or panicked, and its changes may be
/// half done. Repair the data and call [`MutexGuard::mark_consistent`]. A guard that is dropped
/// without it makes the mutex not recoverable: then each acquisition fails with
/// [`LockError::NotRecoverable`] until [`reset`](Self::reset).
///
/// # Panics
/// If the member is not of this mutex's region, or is that of the process's parent.
///
/// # Process-shared
/// That is what it is for. The holder is named by its slot in the region, not by a thread id. So
/// neither a reused id nor another namespace of ids is taken for it. The death is the kernel's
/// word: a stopped process is not dead.
///
/// # Signals and forks
/// A signal handler must not use it. A child of fork does not hold what its parent holds, and joins
/// by itself.
///
/// # Sources
/// The kernel's robust futexes; the tokens are this project's (`ulocks_core::robust`).
#[repr(C)]
pub struct Mutex<T: ?Sized, L: RawRobust = RawMutex> {
    raw: L,
    state: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: the mutex gives one thread at a time access to the data; the guard moves no `T` between
// threads unless `T` is `Send`.
unsafe impl<T: ?Sized + Send, L: RawRobust> Sync for Mutex<T, L> {}
// SAFETY: as the data's.
unsafe impl<T: ?Sized + Send, L: RawRobust> Send for Mutex<T, L> {}

/// Why an acquisition failed, or what it found. `G` is what the caller gets all the same: the
/// guard, or from a wait by a guard how the wait ended.
#[non_exhaustive]
pub enum LockError<G> {
    /// The last holder died or panicked. The caller has the mutex: repair the data.
    OwnerDied(G),
    /// A holder knew that the data was dirty, and did not repair it: [`Mutex::reset`].
    NotRecoverable,
    /// The mutex is held, or the deadline has passed; the caller holds it itself; or the word is
    /// corrupt.
    Refused(Refused),
}

impl<G> LockError<G> {
    /// The same error with another guard.
    pub fn map<H>(self, f: impl FnOnce(G) -> H) -> LockError<H> {
        match self {
            Self::OwnerDied(guard) => LockError::OwnerDied(f(guard)),
            Self::NotRecoverable => LockError::NotRecoverable,
            Self::Refused(refused) => LockError::Refused(refused),
        }
    }
}

impl<G> fmt::Debug for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<G> fmt::Display for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnerDied(_) => f.write_str(
                "the last holder died or panicked, and the caller has the lock: repair the data, then call \
                 `mark_consistent`",
            ),
            Self::NotRecoverable => f.write_str(
                "a holder found the data dirty and did not repair it; `reset` acquires the mutex to repair it",
            ),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl<G> core::error::Error for LockError<G> {}

impl<T, L: RawRobust> Mutex<T, L> {
    ulocks_core::const_fn! {
        /// An unlocked mutex around `data`. If the bytes of `data` are all zero, so are the
        /// mutex's.
        pub fn new(data: T) -> Self {
            Self { raw: ulocks_core::initial!(L), state: AtomicU32::new(CONSISTENT), data: UnsafeCell::new(data) }
        }
    }
}

/// What an acquisition gives.
pub type LockResult<'a, T, L = RawMutex> = Result<MutexGuard<'a, T, L>, LockError<MutexGuard<'a, T, L>>>;

impl<T: ?Sized, L: RawRobust> Mutex<T, L> {
    /// Acquires the mutex.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    #[inline]
    pub fn lock<'a>(&'a self, me: &'a Member<'_>) -> LockResult<'a, T, L> {
        me.check_region(self);
        // SAFETY: the mutex lies in the member's region, and all members of that have one table.
        self.acquired(me, unsafe { self.raw.lock(me) })
    }

    /// Acquires the mutex if no living thread holds it.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); [`Refused::TimedOut`] if it is held.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn try_lock<'a>(&'a self, me: &'a Member<'_>) -> LockResult<'a, T, L> {
        me.check_region(self);
        // SAFETY: as in `lock`.
        self.acquired(me, unsafe { self.raw.try_lock(me) })
    }

    /// Acquires the mutex within `timeout`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); [`Refused::TimedOut`] if it was held for so long.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    pub fn try_lock_for<'a>(&'a self, me: &'a Member<'_>, timeout: Duration) -> LockResult<'a, T, L> {
        self.lock_until(me, Deadline::after(timeout))
    }

    /// Acquires the mutex until `deadline`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); [`Refused::TimedOut`] if the deadline has passed.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    pub fn lock_until<'a>(&'a self, me: &'a Member<'_>, deadline: Deadline) -> LockResult<'a, T, L> {
        me.check_region(self);
        // SAFETY: as in `lock`.
        self.acquired(me, unsafe { self.raw.lock_until(me, deadline) })
    }

    /// Acquires the mutex, also if it is not recoverable: the guard is dirty until
    /// [`mark_consistent`](MutexGuard::mark_consistent).
    ///
    /// # Errors
    /// [`Refused::Deadlock`], [`Refused::Corrupt`].
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    pub fn reset<'a>(&'a self, me: &'a Member<'_>) -> Result<MutexGuard<'a, T, L>, Refused> {
        me.check_region(self);
        // SAFETY: as in `lock`.
        unsafe { self.raw.lock(me) }?;
        self.state.store(DIRTY, Relaxed);
        Ok(self.guard(me))
    }

    /// The guard of a thread that holds the mutex, and has forgotten its guard.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    ///
    /// # Safety
    /// `me` holds the mutex, and there is no other guard of that.
    #[doc(hidden)]
    pub unsafe fn guard_unchecked<'a>(&'a self, me: &'a Member<'_>) -> MutexGuard<'a, T, L> {
        me.check_region(self);
        self.guard(me)
    }

    /// Whether a thread holds the mutex, living or dead, at the moment of the look.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// The place of the data.
    #[cfg(regions)]
    pub(crate) fn data_of(this: *mut Self) -> *mut T
    where
        T: Sized,
    {
        this.wrapping_byte_add(core::mem::offset_of!(Self, data)).cast()
    }

    /// Unlocks a mutex that no thread uses. If a thread held it, the data is dirty.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_lock(this: *mut Self)
    where
        T: Sized,
    {
        // SAFETY: the caller's promise.
        let state = unsafe { &(*this).state };
        let before = state.load(Relaxed);
        // SAFETY: as above.
        if !unsafe { Self::reset_as_dirty(this) } && before == CONSISTENT {
            // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
            state.store(CONSISTENT, Release);
        }
    }

    /// Unlocks a mutex that no thread uses. The data is dirty then. Whether a thread held it.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_as_dirty(this: *mut Self) -> bool
    where
        T: Sized,
    {
        // SAFETY: the caller's promise.
        let this = unsafe { &*this };
        if this.state.load(Relaxed) == CONSISTENT {
            // If the process dies after the next step, no word says that a thread held the mutex.
            // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
            this.state.store(DIRTY, Release);
        }
        this.raw.reset()
    }

    #[inline]
    fn guard<'a>(&'a self, me: &'a Member<'_>) -> MutexGuard<'a, T, L> {
        MutexGuard { mutex: self, me, state: usize::from(std::thread::panicking()) * PANICKING }
    }

    #[inline]
    fn acquired<'a>(&'a self, me: &'a Member<'_>, how: Result<Acquired, Refused>) -> LockResult<'a, T, L> {
        if how == Ok(Acquired::Clean) && self.state.load(Relaxed) == CONSISTENT {
            return Ok(self.guard(me));
        }
        self.acquired_dirty(me, how)
    }

    /// The same of a mutex that was refused, or whose data is not consistent.
    #[cold]
    #[inline(never)]
    fn acquired_dirty<'a>(
        &'a self,
        me: &'a Member<'_>,
        how: Result<Acquired, Refused>,
    ) -> LockResult<'a, T, L> {
        let how = how.map_err(LockError::Refused)?;
        if self.state.load(Relaxed) == NOT_RECOVERABLE {
            // SAFETY: acquired above.
            unsafe { self.raw.unlock(me) };
            return Err(LockError::NotRecoverable);
        }
        if how == Acquired::OwnerDied {
            self.state.store(DIRTY, Relaxed);
        }
        let guard = self.guard(me);
        if guard.is_dirty() { Err(LockError::OwnerDied(guard)) } else { Ok(guard) }
    }
}

impl<T: ?Sized, L: RawRobust> fmt::Debug for Mutex<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        shown.field("locked", &self.raw.is_locked()).field("state", &self.state.load(Relaxed));
        shown.finish_non_exhaustive()
    }
}

/// Access to the data of a [`Mutex`], until it is dropped.
///
/// # Panics
/// If it is used after a wait of a [`Condvar`](crate::Condvar) that could not acquire the mutex
/// again.
#[must_use = "dropped at once, it releases the mutex"]
pub struct MutexGuard<'a, T: ?Sized, L: RawRobust = RawMutex> {
    mutex: &'a Mutex<T, L>,
    me: &'a Member<'a>,
    /// A word, so that a copy of the guard is of whole words.
    state: usize,
}

/// The thread panicked already when it acquired.
const PANICKING: usize = 1;
/// A wait has released the mutex, and not acquired it again.
const LOST: usize = 2;

impl<'a, T: ?Sized, L: RawRobust> MutexGuard<'a, T, L> {
    pub(crate) fn mutex(&self) -> &'a Mutex<T, L> {
        self.mutex
    }

    pub(crate) fn member(&self) -> &'a Member<'a> {
        self.me
    }

    /// Releases the mutex, for a wait. The guard has it: [`check_held`](Self::check_held).
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.is_dirty() {
            self.say(NOT_RECOVERABLE);
        } else if self.state == 0 && std::thread::panicking() {
            self.say(DIRTY);
        }
        self.state |= LOST;
        // SAFETY: the guard's member holds the mutex, and is of this thread: neither can be sent.
        unsafe { self.mutex.raw.unlock(self.me) };
    }

    /// Checks that the guard has the mutex.
    #[inline]
    pub(crate) fn check_held(&self) {
        if self.state & LOST != 0 {
            not_held();
        }
    }

    /// Whether the guard has the mutex. `false` after a wait that could not acquire it again.
    #[must_use]
    #[inline]
    pub fn has_mutex(&self) -> bool {
        self.state & LOST == 0
    }

    /// Whether a holder died or panicked, and the data was not repaired since.
    #[must_use]
    #[inline]
    pub fn is_dirty(&self) -> bool {
        self.mutex.state.load(Relaxed) != CONSISTENT
    }

    /// Says that the data is whole again.
    ///
    /// # Panics
    /// If the guard has no mutex, or is that of the process's parent.
    pub fn mark_consistent(&mut self) {
        self.say(CONSISTENT);
    }

    /// Releases, and makes the mutex not recoverable: the data cannot be repaired.
    ///
    /// # Panics
    /// As [`mark_consistent`](Self::mark_consistent).
    pub fn abandon(self) {
        self.say(DIRTY);
    }

    /// Says what is known of the data. Only the thread that has the mutex knows.
    #[cold]
    #[inline(never)]
    fn say(&self, state: u32) {
        self.check_held();
        self.me.check_process();
        self.mutex.state.store(state, Relaxed);
    }
}

impl<T: ?Sized, L: RawRobust> super::Mends for MutexGuard<'_, T, L> {
    fn mended(&mut self) {
        self.mark_consistent();
    }
}

impl<T: ?Sized, L: RawRobust> Deref for MutexGuard<'_, T, L> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.check_held();
        // SAFETY: the member holds the mutex until its guard is dropped, or lost in a wait. Only if
        // it dies or leaves do others get the mutex. It cannot leave while the guard borrows it,
        // and what it has lent is not used after its thread's end: the contract of `Member::join`.
        self.mutex.data.with(|data| unsafe { &*data })
    }
}

impl<T: ?Sized, L: RawRobust> DerefMut for MutexGuard<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.check_held();
        // SAFETY: as in `deref`, and the guard is borrowed alone.
        self.mutex.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T: ?Sized + fmt::Debug, L: RawRobust> fmt::Debug for MutexGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized, L: RawRobust> Drop for MutexGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        if self.state & LOST == 0 && !ulocks_core::sync::is_abandoned() {
            self.release();
        }
    }
}

/// A guard is used after an error of a wait.
#[cold]
#[inline(never)]
fn not_held() -> ! {
    panic!("the guard has no mutex: a wait could not acquire it again, and its error said so");
}
