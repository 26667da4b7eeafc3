//! Priority inheritance: the kernel knows the owner of the lock, and lends it the priority of the
//! best waiter.
//!
//! # State
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | thread id | owned, no waiters |
//! | thread id, [`WAITERS`] | owned, and the kernel keeps a queue |
//! | thread id, [`OWNER_DIED`], maybe `WAITERS` | owned by a former waiter, after an owner that ended without unlocking |
//!
//! User space acquires a free lock by `0 -> id` (acquire), and releases one without waiters by
//! `id -> 0` (release). The kernel makes all other transitions, in the calls below. Its
//! read-modify-writes are full barriers, so a lock acquired by a call is ordered like one acquired
//! by a CAS. The id is [`tid::current`](crate::tid::current).
//!
//! If the lock was handed to a waiter, the end of the waiter's call orders nothing. The waiter
//! loads the word itself, with Acquire. The models promise no more than that.
//!
//! Under loom, every call is answered [`PiError::Unsupported`]. Models of such locks run on the
//! virtual machine, which has priorities and deaths.
//!
//! Sources: Documentation/locking/pi-futex.rst and futex-requeue-pi.rst in the kernel, futex(2).

use super::{Futex, PiError, PiWaited, Scope};
use crate::sys::time::Deadline;
use crate::sys::world::pi;

// linux/futex.h. The libc crate lacks the three for Android.

/// The bits of the word that hold the owner's thread id.
pub const TID_MASK: u32 = 0x3fff_ffff;
/// The bit of the word that says the kernel keeps waiters: the owner must unlock by a call.
pub const WAITERS: u32 = 0x8000_0000;
/// The bit of the word that says an owner ended without unlocking.
pub const OWNER_DIED: u32 = 0x4000_0000;

/// Priority inheritance. Not under Miri.
impl<S: Scope> Futex<S> {
    /// Acquires, waiting until `deadline`; the owner inherits the caller's priority meanwhile.
    ///
    /// The word holds the caller's id afterwards, with [`OWNER_DIED`] if an earlier owner ended
    /// without unlocking while others waited: what the lock protects may then be half changed.
    ///
    /// # Blocking
    /// Until the lock is the caller's; until `deadline`, if there is one. A free lock is taken even
    /// if the deadline has passed. If an owner has ended, and the waiter that is the next one has
    /// not run yet, the kernel refuses: the caller sleeps and asks again. If the word names the
    /// main thread of a process that was not waited for, it does so for 0.1 s at most.
    ///
    /// # Errors
    /// [`PiError::TimedOut`], [`PiError::Deadlock`], [`PiError::OwnerGone`];
    /// [`PiError::NotPermitted`] and [`PiError::Inconsistent`] if the word holds something that is
    /// no lock.
    ///
    /// # Signals and forks
    /// Signal handlers run, and the wait goes on: the kernel begins it again whatever the handler
    /// and the deadline, so an [interruptible](Deadline::interruptible) one is as good as a plain
    /// one. A child of fork does not own what its parent owns.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    /// use ulocks_core::futex::{Futex, PiError, Local};
    ///
    /// # if cfg!(miri) { return Ok(()) }
    /// let futex = Futex::<Local>::new(0);
    /// let id = ulocks_core::tid::current();
    /// if futex.compare_exchange(0, id, Acquire, Relaxed).is_err() {
    ///     futex.lock_pi(None)?;
    /// }
    /// assert_eq!(futex.lock_pi(None), Err(PiError::Deadlock));
    /// if futex.compare_exchange(id, 0, Release, Relaxed).is_err() {
    ///     futex.unlock_pi()?;
    /// }
    /// # Ok::<(), PiError>(())
    /// ```
    #[cfg_attr(world = "vm", track_caller)]
    pub fn lock_pi(&self, deadline: Option<Deadline>) -> Result<(), PiError> {
        pi::lock(&self.word, deadline, S::PRIVATE)
    }

    /// Acquires if that needs no waiting; returns whether the lock is the caller's.
    ///
    /// The kernel can do so where an exchange of 0 for the id cannot: when the word holds no id but
    /// has [`OWNER_DIED`] or [`WAITERS`] set.
    ///
    /// # Errors
    /// As [`lock_pi`](Self::lock_pi), but never [`PiError::TimedOut`].
    #[cfg_attr(world = "vm", track_caller)]
    pub fn try_lock_pi(&self) -> Result<bool, PiError> {
        pi::try_lock(&self.word, S::PRIVATE)
    }

    /// Releases to the waiter of the highest priority, if there is a waiter.
    ///
    /// # Errors
    /// [`PiError::NotPermitted`] if the word does not hold the caller's id.
    #[cfg_attr(world = "vm", track_caller)]
    pub fn unlock_pi(&self) -> Result<(), PiError> {
        pi::unlock(&self.word, S::PRIVATE)
    }

    /// Sleeps on this plain futex while it holds `expected`, until
    /// [`cmp_requeue_pi`](Self::cmp_requeue_pi) has moved the caller to the priority-inheritance
    /// futex `to` and the caller owns that, or until `deadline`.
    ///
    /// # Errors
    /// [`PiError::TimedOut`]; [`PiError::Inconsistent`] if both futexes are the same, or if a plain
    /// wake-up or requeue found the sleeper.
    ///
    /// # Signals and forks
    /// A signal handler may end the wait with [`PiWaited::Retry`], or the wait goes on, as the
    /// kernel sees fit, whatever the deadline.
    #[cfg_attr(world = "vm", track_caller)]
    pub fn wait_requeue_pi(
        &self,
        expected: u32,
        to: &Self,
        deadline: Option<Deadline>,
    ) -> Result<PiWaited, PiError> {
        pi::wait_requeue(&self.word, expected, &to.word, deadline, S::PRIVATE)
    }

    /// If the word holds `expected`, lets the first waiter of this futex own `to`, or enqueues it
    /// there. Moves up to `requeue` others to the queue of `to`. Returns how many were moved, the
    /// first among them.
    ///
    /// # Errors
    /// [`PiError::Mismatch`] if the word holds something else. [`PiError::Inconsistent`] if a
    /// sleeper here did not come by [`wait_requeue_pi`](Self::wait_requeue_pi), or waits for
    /// another futex than `to`; it may come after 0.1 s, as in [`lock_pi`](Self::lock_pi).
    /// [`PiError::OwnerGone`] and [`PiError::Deadlock`] as there.
    #[cfg_attr(world = "vm", track_caller)]
    pub fn cmp_requeue_pi(&self, expected: u32, requeue: u32, to: &Self) -> Result<u32, PiError> {
        pi::cmp_requeue(&self.word, expected, requeue, &to.word, S::PRIVATE)
    }
}
