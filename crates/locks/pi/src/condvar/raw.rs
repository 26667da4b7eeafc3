//! The protocol of [`PiCondvar`](crate::PiCondvar): waiters sleep on a word until the kernel makes
//! them waiters of the mutex.
//!
//! - 8 bytes, all-zero without waiters, no allocation. Timed, on either clock. Process-shared.
//! - A notified waiter is moved by the kernel from the condition variable to the queue of the mutex
//!   (`FUTEX_CMP_REQUEUE_PI`). From that moment on it lends its priority. It is served by priority,
//!   and wakes up as the owner. A plain futex would wake it to queue by itself. That inverts
//!   priorities and wakes a herd.
//! - No lost wake-ups, with or without the mutex held by the notifier. A notification without
//!   waiters makes no system call, and neither does one whose only waiter still spins.
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `seq` | the futex the waiters sleep on; only "has it changed" matters | every notification that finds a waiter, once |
//! | `waiting` | threads between their registration and their leave, and the state of the spinning one; see [`Waiting`] | waiters, by CAS; a notification of a lone spinner |
//!
//! # Protocol
//! A **wait**, holding the mutex:
//! 1. reads `seq`;
//! 2. registers, `waiting + 1`; if there is no other waiter and it may spin, it sets `SPINNING`;
//! 3. releases the mutex;
//! 4. if it has set `SPINNING`, polls `waiting` and `seq`. If it finds `NOTIFIED`, or `seq`
//!    changed, it leaves: one CAS, `waiting - 1` without both bits. When its budget is spent, it
//!    clears `SPINNING` by a CAS that also shows that `NOTIFIED` is not set;
//! 5. sleeps on `seq` while that has the value read (`FUTEX_WAIT_REQUEUE_PI`);
//! 6. leaves, `waiting - 1`;
//! 7. holds the mutex, or else locks it.
//!
//! A **notification**:
//! 1. returns if `waiting` is zero;
//! 2. if there is one waiter and it is `SPINNING`, sets `NOTIFIED` in place of that bit, and
//!    returns; if it is `NOTIFIED`, returns;
//! 3. changes `seq`;
//! 4. requeues one, or all, to the mutex on condition that `seq` has the value of its own change,
//!    and does so again with the new value as long as others have changed it meanwhile.
//!
//! # Invariants
//! 1. A waiter has read `seq` and is counted while it holds the mutex. A notifier has changed the
//!    condition under the mutex. If it did so before the wait, the waiter has seen the change.
//!    Otherwise it finds the waiter counted, and changes `seq` after the waiter has read it. Then
//!    the waiter does not fall asleep any more, or it is asleep before step 4, or another notifier
//!    has requeued it. If the notifier does not change `seq`, it has set `NOTIFIED` for the only
//!    waiter there is, or found it set (5).
//! 2. A waiter that was requeued finds `seq` different from what it read: a notifier changes
//!    `seq` before it requeues.
//! 3. *No notification dies with a waiter.* A waiter whose deadline passes may have been requeued
//!    before, with the only notification there was, and have timed out in the queue of the mutex.
//!    The kernel does not tell. By 2 the waiter can know that it was *not*: `seq` is what it
//!    read. Only then it reports a timeout. Otherwise it reports a notification, and looks at the
//!    condition as each notified waiter does. The same holds for a wait that a signal ends.
//! 4. All of `waiting` sleep for the same mutex, or the kernel refuses to requeue, and the notifier
//!    is told.
//! 5. At most one waiter has set `SPINNING`, and `NOTIFIED` is set for that one. A registration
//!    sets `SPINNING` only if there is no waiter. That waiter clears both bits before it sleeps or
//!    as it leaves. A waiter that is `NOTIFIED` never falls asleep: it ends its spin by a CAS that
//!    fails then.
//! 6. The order of priority holds: a notification leaves out the kernel only if there is no thread
//!    else to be notified.
//!
//! # What is spurious
//! A wait that times out or is interrupted while others are notified says "notified". A
//! notification that comes between the waiter's steps 3 and 5 ends its wait beside that of the
//! sleeper which is requeued. A notifier that does not hold the mutex may requeue a waiter of
//! higher priority that came after its step 3, instead of an older one: both wait for the same
//! thing or the notifier uses `notify_all`, as with any condition variable that is notified without
//! the mutex.
//!
//! # Memory ordering
//! None of its own: `waiting` and `seq` are read and counted under the mutex, and what the mutex
//! orders is enough for invariant 1; the kernel compares with the newest value of `seq`. Where a
//! waiter looks at `seq` after its sleep (invariant 3), it does so by a read-modify-write, which
//! cannot read an older value than the kernel has seen.
//!
//! # Wrap-around
//! A waiter sleeps through its notification if a multiple of exactly 2^32 changes come between its
//! steps 1 and 5.
//!
//! # Sources
//! Documentation/locking/futex-requeue-pi.rst (D. Hart). glibc bug 11588: its condition variable
//! with a priority-inheriting mutex, which had an internal lock that inherits nothing; requeueing
//! was given up in glibc 2.25. librtpi (<https://gitlab.com/linux-rt/librtpi>): the mutex is an
//! argument of the notification, as here, so that no address is stored. glibc bug 13165 for stolen
//! wake-ups.

use crate::mutex::{RawPiMutex, Taken};
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::{Futex, PiError, PiWaited, Scope};
use ulocks_core::spin::{self, Spin};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, const_fn};

/// The most that one futex operation can move.
const EVERYBODY: u32 = i32::MAX as u32;

/// The raw condition variable, for a [`RawPiMutex`] of the same policy.
#[derive(Debug)]
#[repr(C)]
pub struct RawPiCondvar<P: Policy = Private> {
    seq: Futex<P::Scope>,
    waiting: AtomicU32,
}

impl<P: Policy> RawPiCondvar<P> {
    const_fn! {
        /// A condition variable no thread waits on; its bytes are all zero.
        pub fn new() -> Self {
            Self { seq: Futex::new(0), waiting: AtomicU32::new(0) }
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
        mutex: &RawPiMutex<P>,
        deadline: Option<Deadline>,
    ) -> Result<(Taken, Wakeup), PiError> {
        let read = self.seq.load(Relaxed);
        let budget = if P::Scope::PRIVATE { spin::budget::<P::Scope>(P::Spin::CONDVAR_NS) } else { 0 };
        let spins = self.register(budget > 0);
        mutex.release();
        if spins && self.spin(read, budget) {
            return Ok((mutex.acquire(None)?, Wakeup::Notified));
        }
        let slept = self.sleep(read, mutex, deadline);
        // Not under the mutex: too many only cost a notifier a system call.
        self.change(Waiting::without_one);
        let wakeup = match slept? {
            Slept::Owner => return Ok((mutex.look_after_sleep(), Wakeup::Notified)),
            Slept::Moved => Wakeup::Notified,
            Slept::TimedOut => Wakeup::TimedOut,
        };
        Ok((mutex.acquire(None)?, wakeup))
    }

    /// Changes `waiting`, and returns what it was.
    fn change(&self, change: impl Fn(Waiting) -> Waiting) -> Waiting {
        let mut was = Waiting(self.waiting.load(Relaxed));
        while let Err(now) = self.waiting.compare_exchange(was.0, change(was).0, Relaxed, Relaxed) {
            was = Waiting(now);
        }
        was
    }

    /// Step 2. Whether the caller, which `may_spin`, does.
    fn register(&self, may_spin: bool) -> bool {
        let spins = |was: Waiting| may_spin && was.lets_spin();
        spins(self.change(|was| was.with_one(spins(was), may_spin)))
    }

    /// Step 4. False if the caller has to sleep.
    fn spin(&self, read: u32, budget: u32) -> bool {
        let waiting = || Waiting(self.waiting.load(Relaxed));
        let has_moved = || self.seq.load(Relaxed) != read;
        spin::until(budget, || waiting().has(Waiting::NOTIFIED) || has_moved());
        let leaves = has_moved();
        let was = self.change(|was| was.without_spinner(leaves));
        leaves || was.has(Waiting::NOTIFIED)
    }

    fn sleep(&self, read: u32, mutex: &RawPiMutex<P>, deadline: Option<Deadline>) -> Result<Slept, PiError> {
        loop {
            let timed_out = match self.seq.wait_requeue_pi(read, mutex.futex(), deadline) {
                Ok(PiWaited::Locked) => return Ok(Slept::Owner),
                Ok(PiWaited::Retry) => false,
                Err(PiError::TimedOut) => true,
                Err(error) => return Err(error),
            };
            // Invariant 3.
            if self.seq.fetch_add(0, Relaxed) != read {
                return Ok(Slept::Moved);
            }
            if timed_out {
                return Ok(Slept::TimedOut);
            }
        }
    }

    /// Lets the waiter of the highest priority have `mutex`, or wait for it; returns how many were
    /// asleep to be moved, or one for a waiter that was spinning.
    ///
    /// # Errors
    /// Those of [`Futex::cmp_requeue_pi`], but for the mismatch.
    pub fn notify_one(&self, mutex: &RawPiMutex<P>) -> Result<usize, PiError> {
        self.notify(0, mutex)
    }

    /// Lets all waiters have `mutex`, one after the other; returns how many were asleep to be
    /// moved.
    ///
    /// # Errors
    /// As [`notify_one`](Self::notify_one).
    pub fn notify_all(&self, mutex: &RawPiMutex<P>) -> Result<usize, PiError> {
        self.notify(EVERYBODY, mutex)
    }

    fn notify(&self, beside_one: u32, mutex: &RawPiMutex<P>) -> Result<usize, PiError> {
        let mut waiting = Waiting(self.waiting.load(Relaxed));
        while waiting.count() <= 1 {
            if waiting.count() == 0 || waiting.has(Waiting::NOTIFIED) {
                return Ok(0);
            }
            if !waiting.has(Waiting::SPINNING) {
                break;
            }
            match self.waiting.compare_exchange(waiting.0, waiting.notified().0, Relaxed, Relaxed) {
                Ok(_) => return Ok(1),
                Err(now) => waiting = Waiting(now),
            }
        }
        let mut moved = self.seq.fetch_add(1, Relaxed).wrapping_add(1);
        loop {
            match self.seq.cmp_requeue_pi(moved, beside_one, mutex.futex()) {
                Ok(count) => return Ok(count as usize),
                Err(PiError::Mismatch) => moved = self.seq.fetch_add(0, Relaxed),
                Err(error) => return Err(error),
            }
        }
    }
}

impl<P: Policy> Default for RawPiCondvar<P> {
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

/// A value of `waiting`.
///
/// | part | bits | law |
/// |---|---|---|
/// | count | 24 | threads between their registration and their leave |
/// | vain | 5 | below `TRIES`: spins in vain in a row. From `TRIES` on: waits since then that did not spin |
/// | `SPINNING` | 1 | a waiter spins: set and cleared by that waiter, or cleared by the notification that sets `NOTIFIED` |
/// | `NOTIFIED` | 1 | the waiter that spins was notified: set by a notification, cleared by that waiter |
#[derive(Clone, Copy)]
struct Waiting(u32);

impl Waiting {
    const SPINNING: u32 = 1 << 30;
    const NOTIFIED: u32 = 1 << 31;
    const COUNT: u32 = (1 << 24) - 1;
    const ONE_VAIN: u32 = 1 << 24;

    fn count(self) -> u32 {
        self.0 & Self::COUNT
    }

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    fn vain(self) -> u32 {
        self.0 / Self::ONE_VAIN % 32
    }

    fn with_vain(self, vain: u32) -> Self {
        Self(self.0 - self.vain() * Self::ONE_VAIN + vain * Self::ONE_VAIN)
    }

    fn lets_spin(self) -> bool {
        self.count() == 0 && !(spin::TRIES..spin::PROBE).contains(&self.vain())
    }

    /// With one more waiter, which spins, or would have if it had been let.
    fn with_one(self, spins: bool, may_spin: bool) -> Self {
        let next = Self(self.0 + 1);
        if spins {
            Self(next.0 | Self::SPINNING)
        } else if may_spin && (spin::TRIES..spin::PROBE).contains(&self.vain()) {
            next.with_vain(self.vain() + 1)
        } else {
            next
        }
    }

    fn without_one(self) -> Self {
        Self(self.0 - 1)
    }

    /// Without the spinner's bit, and without the spinner if it was notified or `leaves` for
    /// another reason.
    fn without_spinner(self, leaves: bool) -> Self {
        let notified = leaves || self.has(Self::NOTIFIED);
        let vain = match self.vain() {
            _ if notified => 0,
            vain => (vain + 1).min(spin::TRIES),
        };
        let next = Self(self.0 & !(Self::SPINNING | Self::NOTIFIED)).with_vain(vain);
        if notified { next.without_one() } else { next }
    }

    fn notified(self) -> Self {
        Self(self.0 & !Self::SPINNING | Self::NOTIFIED)
    }
}
