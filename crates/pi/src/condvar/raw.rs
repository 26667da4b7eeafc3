//! The protocol of [`PiCondvar`](crate::PiCondvar): waiters sleep on a word until the kernel makes them waiters of the
//! mutex.
//!
//! - 8 bytes, all-zero when nobody waits, no allocation. Timed, on either clock. Process-shared.
//! - A notified waiter is moved by the kernel from the condition variable to the queue of the mutex (`FUTEX_CMP_REQUEUE_PI`):
//!   it lends its priority from that moment on, is served by priority, and wakes up as the owner. A plain futex would wake
//!   it to queue by itself, which inverts priorities and wakes a herd.
//! - No lost wake-ups, with or without the mutex held by the notifier. A notification without waiters makes no system call.
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `moves` | the futex the waiters sleep on; only "has it changed" matters | every notification that finds a waiter, once |
//! | `waiting` | threads between their registration and their leave | waiters |
//!
//! # Protocol
//! A **wait**, holding the mutex: (1) reads `moves`; (2) `waiting + 1`; (3) releases the mutex; (4) sleeps on `moves` while it
//! has the value read (`FUTEX_WAIT_REQUEUE_PI`); (5) `waiting - 1`; (6) holds the mutex, or else locks it.
//!
//! A **notification**: (1) returns if `waiting` is zero; (2) moves `moves`; (3) requeues one, or all, to the mutex on condition
//! that `moves` has the value of its own move, and does so again with the new value as long as others have moved it
//! meanwhile.
//!
//! # Invariants
//! 1. Who waits has read `moves` and is counted while it holds the mutex. So a notifier that changed what is waited for under
//!    the mutex either did it before, and the waiter has seen it, or finds the waiter counted, and moves `moves` after the
//!    waiter read it: the waiter does not fall asleep any more, or is asleep before (3), or was requeued by another.
//! 2. Whoever was requeued finds `moves` different from what it read: requeueing comes after moving.
//! 3. *No notification dies with a waiter.* A waiter whose deadline passes may have been requeued before, with the only
//!    notification there was, and given up in the queue of the mutex. The kernel does not tell. By 2 it can know that it was
//!    *not*: `moves` is what it read. Only then it says that it timed out; otherwise it says that it was notified, and looks
//!    at the condition as everybody does. The same holds for a wait that a signal ends.
//! 4. All of `waiting` sleep for the same mutex, or the kernel refuses to requeue, and the notifier is told.
//!
//! # What is spurious
//! A wait that times out or is interrupted while others are notified says "notified". A notification that comes between the
//! waiter's (3) and (4) ends its wait beside that of the sleeper which is requeued. A notifier that does not hold the mutex
//! may requeue a waiter of higher priority that came after its (2), instead of an older one: both wait for the same thing
//! or the notifier uses `notify_all`, as with any condition variable that is notified without the mutex.
//!
//! # Memory ordering
//! None of its own: `waiting` and `moves` are read and counted under the mutex, and what the mutex orders is enough for
//! invariant 1; the kernel compares with the newest value of `moves`. Where a waiter looks at `moves` after its sleep
//! (invariant 3), it does so by a read-modify-write, which cannot read an older value than the kernel has seen.
//!
//! # Wrap-around
//! A waiter sleeps through its notification if a multiple of exactly 2^32 moves come between its (1) and (4).
//!
//! # Sources
//! Documentation/locking/futex-requeue-pi.rst (D. Hart). glibc bug 11588: its condition variable with a priority-inheriting
//! mutex, which had an internal lock that inherits nothing; requeueing was given up in glibc 2.25. librtpi
//! (<https://gitlab.com/linux-rt/librtpi>): the mutex is an argument of the notification, as here, so that no address
//! is stored. glibc bug 13165 for stolen wake-ups.

use crate::mutex::Taken;
use crate::mutex::raw::{Protocol as Mutex, seeded as mutex};
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::{Futex, PiError, PiWaited};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, const_fn};

/// The bugs that the models must find, one at a time. The condition variable proper has none of them: the comparisons
/// with `BUG` are decided at compile time.
#[doc(hidden)]
pub mod seeded {
    /// No bug.
    pub const NOTHING: u8 = 0;
    /// A waiter reads `moves` after the mutex is released.
    pub const READS_LATE: u8 = 1;
    /// A waiter registers after the mutex is released.
    pub const REGISTERS_LATE: u8 = 2;
    /// A notification requeues without moving `moves`.
    pub const NO_MOVE: u8 = 3;
    /// A notification that finds `moves` moved by another does nothing instead.
    pub const IGNORES_MISMATCH: u8 = 4;
    /// A waiter whose deadline passes says so, whether or not a notification came to it.
    pub const TIMEOUT_SWALLOWS: u8 = 5;
    /// A waiter that was not given the mutex by the kernel returns as if it had been.
    pub const FORGETS_TO_LOCK: u8 = 6;
}
use seeded::*;

/// The most that one futex operation can move.
const EVERYBODY: u32 = i32::MAX as u32;

/// The protocol with the seeded bug `BUG`; [`RawPiCondvar`] is the one that has none.
#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct Protocol<P: Policy, const BUG: u8> {
    moves: Futex<P::Scope>,
    waiting: AtomicU32,
}

/// The raw condition variable, for a [`RawPiMutex`](crate::RawPiMutex) of the same policy.
pub type RawPiCondvar<P = Private> = Protocol<P, NOTHING>;

impl<P: Policy, const BUG: u8> Protocol<P, BUG> {
    const_fn! {
        /// A condition variable nobody waits on; its bytes are all zero.
        pub fn new() -> Self {
            Self { moves: Futex::new(0), waiting: AtomicU32::new(0) }
        }
    }

    /// Releases `mutex` and sleeps until notified or until `deadline`, then holds the mutex again.
    ///
    /// # Errors
    /// Those of the mutex, which is not held then.
    ///
    /// # Safety
    /// The caller holds `mutex`.
    pub unsafe fn wait(
        &self,
        mutex: &Mutex<P, { mutex::NOTHING }>,
        deadline: Option<Deadline>,
    ) -> Result<(Taken, Wakeup), PiError> {
        let mut read = self.moves.load(Relaxed);
        if BUG != REGISTERS_LATE {
            self.waiting.fetch_add(1, Relaxed);
        }
        mutex.release();
        if BUG == REGISTERS_LATE {
            self.waiting.fetch_add(1, Relaxed);
        }
        if BUG == READS_LATE {
            read = self.moves.load(Relaxed);
        }
        let slept = self.sleep(read, mutex, deadline);
        // Not under the mutex: too many only cost a notifier a system call.
        self.waiting.fetch_sub(1, Relaxed);
        let wakeup = match slept? {
            Slept::Owner => return Ok((mutex.look_again(), Wakeup::Notified)),
            Slept::Moved => Wakeup::Notified,
            Slept::TimedOut => Wakeup::TimedOut,
        };
        if BUG == FORGETS_TO_LOCK {
            return Ok((Taken::Sound, wakeup));
        }
        Ok((mutex.acquire(None)?, wakeup))
    }

    fn sleep(
        &self,
        read: u32,
        mutex: &Mutex<P, { mutex::NOTHING }>,
        deadline: Option<Deadline>,
    ) -> Result<Slept, PiError> {
        loop {
            let timed_out = match self.moves.wait_requeue_pi(read, mutex.futex(), deadline) {
                Ok(PiWaited::Locked) => return Ok(Slept::Owner),
                Ok(PiWaited::Retry) => false,
                Err(PiError::TimedOut) => true,
                Err(error) => return Err(error),
            };
            if timed_out && BUG == TIMEOUT_SWALLOWS {
                return Ok(Slept::TimedOut);
            }
            // Invariant 3.
            if self.moves.fetch_add(0, Relaxed) != read {
                return Ok(Slept::Moved);
            }
            if timed_out {
                return Ok(Slept::TimedOut);
            }
        }
    }

    /// Lets the waiter of the highest priority have `mutex`, or wait for it; returns how many were asleep to be moved.
    ///
    /// # Errors
    /// Those of [`Futex::cmp_requeue_pi`], but for the mismatch.
    pub fn notify_one(&self, mutex: &Mutex<P, { mutex::NOTHING }>) -> Result<usize, PiError> {
        self.notify(0, mutex)
    }

    /// Lets all waiters have `mutex`, one after the other; returns how many were asleep to be moved.
    ///
    /// # Errors
    /// As [`notify_one`](Self::notify_one).
    pub fn notify_all(&self, mutex: &Mutex<P, { mutex::NOTHING }>) -> Result<usize, PiError> {
        self.notify(EVERYBODY, mutex)
    }

    fn notify(&self, beside_one: u32, mutex: &Mutex<P, { mutex::NOTHING }>) -> Result<usize, PiError> {
        if self.waiting.load(Relaxed) == 0 {
            return Ok(0);
        }
        let mut moved = match BUG {
            NO_MOVE => self.moves.load(Relaxed),
            _ => self.moves.fetch_add(1, Relaxed).wrapping_add(1),
        };
        loop {
            match self.moves.cmp_requeue_pi(moved, beside_one, mutex.futex()) {
                Ok(count) => return Ok(count as usize),
                Err(PiError::Mismatch) if BUG == IGNORES_MISMATCH => return Ok(0),
                Err(PiError::Mismatch) => moved = self.moves.fetch_add(0, Relaxed),
                Err(error) => return Err(error),
            }
        }
    }
}

impl<P: Policy, const BUG: u8> Default for Protocol<P, BUG> {
    fn default() -> Self {
        Self::new()
    }
}

/// How a sleep ended.
enum Slept {
    /// The mutex is the caller's.
    Owner,
    /// A notification came, to the caller or to others; the mutex is not the caller's.
    Moved,
    /// The deadline passed and no notification came.
    TimedOut,
}
