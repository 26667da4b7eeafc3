//! Priority inheritance: the kernel knows who owns the lock and lends the owner the priority of the best waiter.
//!
//! # State
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | thread id | owned, nobody waits |
//! | thread id, [`WAITERS`] | owned, and the kernel keeps a queue |
//! | thread id, [`OWNER_DIED`], maybe `WAITERS` | owned by the next in line after an owner that ended without unlocking |
//!
//! User space takes a free lock by `0 -> id` (acquire) and releases one without waiters by `id -> 0` (release). Every
//! other transition is the kernel's, in the calls below; its read-modify-writes are full barriers, so a lock taken by
//! a call is ordered like one taken by an exchange. The id is [`tid::current`](crate::tid::current).
//!
//! `FUTEX_LOCK_PI` measures its deadline on the realtime clock only. Linux 5.14 mended that with `FUTEX_LOCK_PI2`;
//! before, a monotonic deadline is translated, and translated anew if the clock was set meanwhile.
//!
//! Sources: Documentation/locking/pi-futex.rst and futex-requeue-pi.rst in the kernel, futex(2).

use super::{Futex, PiError, Scope};
use crate::capabilities::{Capability, missing, note_missing};
use crate::errno::Errno;
use crate::time::{Clock, Deadline};
use crate::world::syscall::{clamp, futex, futex_until, on_clock_of};
use core::ptr::null_mut;

/// The bits of the word that hold the owner's thread id.
pub const TID_MASK: u32 = libc::FUTEX_TID_MASK;
/// The bit of the word that says the kernel keeps waiters: the owner must unlock by a call.
pub const WAITERS: u32 = libc::FUTEX_WAITERS;
/// The bit of the word that says an owner ended without unlocking.
pub const OWNER_DIED: u32 = libc::FUTEX_OWNER_DIED;

/// How a wait for a requeue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PiWaited {
    /// The caller owns the priority-inheritance futex.
    Locked,
    /// The caller owns nothing: the word did not hold the expected value, or a signal handler ran. Look again.
    Retry,
}

/// Priority inheritance. Not under Miri.
impl<S: Scope> Futex<S> {
    /// Acquires, waiting until `deadline`; the owner inherits the caller's priority meanwhile.
    ///
    /// The word holds the caller's id afterwards, with [`OWNER_DIED`] if an earlier owner ended without unlocking
    /// while others waited: what the lock protects may then be half changed.
    ///
    /// # Blocking
    /// Until the lock is the caller's; until `deadline`, if there is one. A free lock is taken even if the deadline
    /// has passed.
    ///
    /// # Errors
    /// [`PiError::TimedOut`], [`PiError::Deadlock`], [`PiError::OwnerGone`]; [`PiError::NotPermitted`] and
    /// [`PiError::Inconsistent`] if the word holds something that is no lock.
    ///
    /// # Signals and forks
    /// Signal handlers run, and the wait goes on. A child of fork does not own what its parent owns.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    /// use ulocks_core::futex::{Futex, PiError, Private};
    ///
    /// # if cfg!(miri) { return Ok(()) }
    /// let futex = Futex::<Private>::new(0);
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
    pub fn lock_pi(&self, deadline: Option<Deadline>) -> Result<(), PiError> {
        loop {
            let answer = if missing(Capability::LockPi2) {
                self.lock_pi_on_realtime(deadline)
            } else {
                self.lock_pi2(deadline)
            };
            match answer {
                Ok(_) => return Ok(()),
                // The owner is on its way out of the kernel and has not left its locks behind yet.
                Err(Errno(libc::EAGAIN)) => {}
                Err(Errno(libc::ENOSYS)) if !missing(Capability::LockPi2) => {
                    note_missing(Capability::LockPi2)
                }
                Err(error) => return Err(PiError::of("FUTEX_LOCK_PI", error)),
            }
        }
    }

    fn lock_pi2(&self, deadline: Option<Deadline>) -> Result<u32, Errno> {
        let command = on_clock_of(deadline, libc::FUTEX_LOCK_PI2);
        // SAFETY: the kernel writes this word, an atomic that is borrowed for the whole call; there is no second.
        unsafe { futex_until(self.as_ptr(), command, S::PRIVATE, 0, deadline, null_mut(), 0) }
    }

    fn lock_pi_on_realtime(&self, deadline: Option<Deadline>) -> Result<u32, Errno> {
        let translated = deadline.map(|deadline| match deadline.clock() {
            Clock::Realtime => deadline,
            Clock::Monotonic => Deadline::after_on(Clock::Realtime, deadline.remaining()),
        });
        // SAFETY: as in `lock_pi2`.
        let answer = unsafe {
            futex_until(self.as_ptr(), libc::FUTEX_LOCK_PI, S::PRIVATE, 0, translated, null_mut(), 0)
        };
        match answer {
            // Somebody set the clock forward.
            Err(Errno(libc::ETIMEDOUT)) if !deadline.is_some_and(|deadline| deadline.has_passed()) => {
                Err(Errno(libc::EAGAIN))
            }
            answer => answer,
        }
    }

    /// Acquires if that needs no waiting; returns whether the lock is the caller's.
    ///
    /// The kernel can do so where an exchange of 0 for the id cannot: when the word holds no id but has [`OWNER_DIED`] or
    /// [`WAITERS`] set.
    ///
    /// # Errors
    /// As [`lock_pi`](Self::lock_pi), but never [`PiError::TimedOut`].
    pub fn try_lock_pi(&self) -> Result<bool, PiError> {
        // SAFETY: as in `lock_pi2`.
        let answer = unsafe { futex(self.as_ptr(), libc::FUTEX_TRYLOCK_PI, S::PRIVATE, 0, 0, null_mut(), 0) };
        match answer {
            Ok(_) => Ok(true),
            Err(Errno(libc::EAGAIN)) => Ok(false),
            Err(error) => Err(PiError::of("FUTEX_TRYLOCK_PI", error)),
        }
    }

    /// Releases to the waiter of the highest priority, or to nobody.
    ///
    /// # Errors
    /// [`PiError::NotPermitted`] if the word does not hold the caller's id.
    pub fn unlock_pi(&self) -> Result<(), PiError> {
        // SAFETY: as in `lock_pi2`.
        let answer = unsafe { futex(self.as_ptr(), libc::FUTEX_UNLOCK_PI, S::PRIVATE, 0, 0, null_mut(), 0) };
        match answer {
            Ok(_) => Ok(()),
            Err(error) => Err(PiError::of("FUTEX_UNLOCK_PI", error)),
        }
    }

    /// Sleeps on this plain futex while it holds `expected`, until [`cmp_requeue_pi`](Self::cmp_requeue_pi) has moved
    /// the caller to the priority-inheritance futex `to` and the caller owns that, or until `deadline`.
    ///
    /// # Errors
    /// [`PiError::TimedOut`]; [`PiError::Inconsistent`] if both futexes are the same, or if a plain wake-up or requeue
    /// found the sleeper.
    ///
    /// # Signals and forks
    /// A signal handler may end the wait with [`PiWaited::Retry`], or the wait goes on, as the kernel sees fit.
    pub fn wait_requeue_pi(
        &self,
        expected: u32,
        to: &Self,
        deadline: Option<Deadline>,
    ) -> Result<PiWaited, PiError> {
        let command = on_clock_of(deadline, libc::FUTEX_WAIT_REQUEUE_PI);
        let (word, to) = (self.as_ptr(), to.as_ptr());
        // SAFETY: the kernel reads the one word and writes the other, atomics that are borrowed for the whole call.
        match unsafe { futex_until(word, command, S::PRIVATE, expected, deadline, to, u32::MAX) } {
            Ok(_) => Ok(PiWaited::Locked),
            Err(Errno(libc::EAGAIN | libc::EINTR)) => Ok(PiWaited::Retry),
            Err(error) => Err(PiError::of("FUTEX_WAIT_REQUEUE_PI", error)),
        }
    }

    /// Lets the first waiter of this futex own `to`, or queue for it, and moves up to `requeue` others to the queue of
    /// `to`, if the word holds `expected`; returns how many were moved, the first among them.
    ///
    /// # Errors
    /// [`PiError::Mismatch`] if the word holds something else; [`PiError::Inconsistent`] if somebody sleeps here who
    /// did not come by [`wait_requeue_pi`](Self::wait_requeue_pi), or who waits for another futex than `to`;
    /// [`PiError::OwnerGone`] and [`PiError::Deadlock`] as in [`lock_pi`](Self::lock_pi).
    pub fn cmp_requeue_pi(&self, expected: u32, requeue: u32, to: &Self) -> Result<u32, PiError> {
        let (word, to, requeue) = (self.as_ptr(), to.as_ptr(), clamp(requeue));
        // SAFETY: the kernel reads the one word and writes the other, atomics that are borrowed for the whole call.
        let answer = unsafe { futex(word, libc::FUTEX_CMP_REQUEUE_PI, S::PRIVATE, 1, requeue, to, expected) };
        answer.map_err(|error| PiError::of("FUTEX_CMP_REQUEUE_PI", error))
    }
}
