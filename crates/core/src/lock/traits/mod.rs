//! What a raw lock offers to the typed faces in `api` and to the test kit.

mod rwlock;

pub use rwlock::{
    RawRwLock, RawRwLockAsync, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};

use crate::lock::condvar::Waits;
use crate::lock::meter::{Counted, Meter, Snapshot};
use crate::sys::futex::{FutexKey, Scope};
use crate::sys::time::Deadline;

/// A type with an initial value: an unlocked lock, or a component of one.
///
/// Declared and read with [`initial!`](crate::initial), since the value is a constant on the
/// machine and a function in models.
pub trait Initial: Sized {
    /// The initial value.
    #[cfg(world = "machine")]
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self;
    /// The initial value.
    #[cfg(not(world = "machine"))]
    fn init() -> Self;
}

/// A mutex without data. Its initial value is unlocked.
///
/// # Safety
/// From the return of `lock`, `try_lock` or `lock_until` with a token to the `unlock` of that
/// token, no other acquisition returns a token. What happened before an `unlock` happens before the
/// next acquisition's return. A token may be forgotten; a locked mutex may be moved or dropped.
pub unsafe trait RawMutex: Initial {
    /// Which threads may contend: those of one process, or of all processes that map the lock.
    type Scope: Scope;
    /// What an acquisition hands to its release.
    type Token;
    /// How threads wait on a condition variable of this mutex: [`Sequence`], unless the mutex has
    /// better.
    ///
    /// [`Sequence`]: crate::condvar::Sequence
    type Condvar: Waits<Self>;

    /// Acquires the mutex, waiting as long as it takes.
    fn lock(&self) -> Self::Token;
    /// Acquires the mutex if that needs no waiting.
    fn try_lock(&self) -> Option<Self::Token>;
    /// Acquires the mutex, or gives up once `deadline` has passed.
    fn lock_until(&self, deadline: Deadline) -> Option<Self::Token>;
    /// Releases the mutex.
    ///
    /// # Safety
    /// The token comes from an acquisition of this mutex in this context.
    unsafe fn unlock(&self, token: Self::Token);
    /// For how long a waiter on a condition variable of this mutex spins before it sleeps, in
    /// nanoseconds.
    const CONDVAR_NS: u32 = 0;

    /// Releases the mutex for a thread that is about to wait on a condition variable.
    ///
    /// That thread does not contend again before it is notified. Some mutexes leave waiters asleep
    /// at a release, because their users soon contend again. Such a mutex wakes a waiter here.
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    #[inline]
    unsafe fn unlock_to_wait(&self, token: Self::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock(token) };
    }

    /// Whether a thread holds the mutex at this moment.
    fn is_locked(&self) -> bool;

    /// The futex to which a condition variable may requeue its sleepers (`FUTEX_CMP_REQUEUE`), if
    /// the protocol allows foreign sleepers. A mutex that returns a key implements `lock_requeued`
    /// too. Requeued sleepers sleep with bit 0 and no other. So a mutex can leave them asleep while
    /// it wakes sleepers of its own by other bits.
    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<Self::Scope>> {
        None
    }

    /// If the mutex is held, marks it, so that a release wakes a thread that sleeps on
    /// `requeue_key`. Returns whether it is held and marked.
    ///
    /// This is for a condition variable that has just requeued notified threads there. If the mutex
    /// is free, it wakes one of them. A mark on a mutex that is not held costs one wake-up that
    /// finds no thread. To find that the mutex is marked already takes a read-modify-write: a
    /// release that precedes that has not seen the mark.
    #[inline]
    fn mark_for_requeued(&self) -> bool {
        false
    }

    /// Acquires for a thread that may have slept on `requeue_key`. Other threads may still sleep
    /// there, so the release that follows wakes one of them.
    #[inline]
    fn lock_requeued(&self) -> Self::Token {
        self.lock()
    }
}

/// A raw lock whose waiters a signal handler can end.
///
/// The methods that take a [`Deadline`] give up also when a handler runs while the thread sleeps,
/// if the deadline is [interruptible](Deadline::interruptible). They leave nothing else behind than
/// if the deadline had passed. [`interrupt`](crate::interrupt) has the methods for users of typed
/// locks.
///
/// A lock is not of this kind if it sleeps where the kernel begins its wait again after a handler:
/// in a priority-inheriting futex, in several futexes at once, or in `parking_lot_core`.
pub trait RawInterruptible {}

/// A mutex whose waiters may be tasks. [`task`](crate::task) has the methods for users of typed
/// locks.
///
/// # Safety
/// As [`RawMutex`], for the token that the future returns too. Each token may be released by any
/// thread.
pub unsafe trait RawMutexAsync: RawMutex {
    /// The future of [`lock_async`](Self::lock_async). It may be dropped at any moment, and then
    /// leaves nothing behind. One that was polled and is forgotten is a user of the mutex for ever.
    type LockAsync<'a>: Future<Output = Self::Token> + Send + Sync
    where
        Self: 'a;

    /// Acquires the mutex for a task, which waits as long as it takes.
    fn lock_async(&self) -> Self::LockAsync<'_>;
}

/// A mutex with a release that hands the lock to the longest waiter.
///
/// # Safety
/// As [`RawMutex`].
pub unsafe trait RawMutexFair: RawMutex {
    /// Releases the mutex to the longest waiter, if there is one.
    ///
    /// # Safety
    /// As [`RawMutex::unlock`].
    unsafe fn unlock_fair(&self, token: Self::Token);
}

/// A lock that counts its events, if its policy says so: a raw lock, or data behind one.
pub trait Metered {
    /// What it counts.
    type Meter: Meter;
    /// The counters.
    fn meter(&self) -> &Self::Meter;

    /// The counters of a [`Counted`] lock as they stand.
    fn counts(&self) -> Snapshot
    where
        Self: Metered<Meter = Counted>,
    {
        self.meter().snapshot()
    }
}
