//! A wait in steps, for a caller that sleeps in a frame of its own.
//!
//! `pthread_cond_wait` is a cancellation point: a thread that is cancelled in its sleep unwinds
//! from there, and no frame of Rust may be in between. Such a caller begins a wait, makes the
//! system call itself as long as [`RawCondvar::sleep`] says so, and reports how it ended. If the
//! thread is cancelled, its cleanup handler calls [`RawCondvar::cancel_wait`].
//!
//! These are the steps of `raw.rs`, with one difference: step 9 comes before step 8. So the
//! condition variable may be freed as soon as all waiters are past [`RawCondvar::end_wait`], even
//! if the mutex is held until then.

use super::raw::{MOVABLE, Sequence};
use super::word::Counts;
use super::{RawCondvar, Wakeup};
use crate::lock::spin;
use crate::lock::traits::RawMutex;
use crate::sys::futex::Waited;
use crate::sys::sync::Ordering::{Acquire, Relaxed};
use crate::sys::time::Deadline;

/// How a waiter registered.
pub(super) struct Entry {
    /// The value of `seq`.
    pub read: u32,
    pub place: Place,
    /// For how many pauses it spins; zero if it does not count in `spinning`.
    pub budget: u32,
}

/// What a waiter has found as it registered.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub epoch: u32,
    /// Its process, where that counts.
    pub process: Option<u32>,
}

impl Place {
    /// Whether the waiter is in a child of the process in which it registered (Invariant 7).
    pub fn is_copy(self) -> bool {
        self.process.is_some() && self.process != spin::process()
    }
}

/// How a waiter left.
pub(super) struct Left {
    pub wakeup: Wakeup,
    /// Whether a notification was its own.
    pub takes_grant: bool,
    /// Whether the wake-up may be another's.
    pub passes_on: bool,
    pub requeued: bool,
    /// Whether a notification may still look at the mutex.
    pub requeuing: bool,
}

impl Left {
    /// Of a waiter in a copy of its process.
    pub const COPY: Self = Self {
        wakeup: Wakeup::Notified,
        takes_grant: false,
        passes_on: false,
        requeued: true,
        requeuing: false,
    };

    /// Of a waiter for which the counts have no room: it does not sleep, and has nothing to leave.
    pub fn uncounted(deadline: Option<Deadline>) -> Self {
        let timed_out = deadline.is_some_and(|deadline| deadline.has_passed());
        let wakeup = if timed_out { Wakeup::TimedOut } else { Wakeup::Notified };
        Self { wakeup, takes_grant: false, passes_on: false, requeued: false, requeuing: false }
    }
}

/// A wait that has begun: the mutex is released.
pub struct Waiting(State);

enum State {
    Waits(Entry),
    Left(Left),
}

/// What a waiter sleeps on: `FUTEX_WAIT_BITSET` of one process.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    /// The address of the word.
    pub address: usize,
    /// The value that it has.
    pub expected: u32,
    /// The bits of the sleep.
    pub bits: u32,
}

/// How a wait ended.
#[derive(Debug)]
#[must_use = "a thread that may have slept on the mutex acquires it in another way"]
pub struct Woken {
    /// Whether it was notified.
    pub wakeup: Wakeup,
    /// Whether it may have slept on the mutex: it acquires that by `lock_requeued`.
    pub requeued: bool,
}

impl<L: RawMutex<Condvar = Sequence<L>>> RawCondvar<L> {
    /// Releases `mutex`, and polls for a notification. The deadline is that of the caller's sleeps:
    /// a wait that never sleeps looks at it, too.
    ///
    /// # Safety
    /// `token` comes from an acquisition of `mutex` in this context. The wait that is returned goes
    /// to `end_wait` or `cancel_wait`.
    pub unsafe fn begin_wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> Waiting {
        // SAFETY: the caller's promise.
        let Some(entry) = (unsafe { self.0.begin(mutex, token) }) else {
            return Waiting(State::Left(Left::uncounted(deadline)));
        };
        Waiting(match self.0.spin_first(&entry) {
            Some(left) => State::Left(left),
            None => State::Waits(entry),
        })
    }

    /// What the caller has to sleep on before it ends the wait. `None` if the wait is over.
    pub fn sleep(&self, waiting: &Waiting) -> Option<Sleep> {
        match &waiting.0 {
            State::Waits(entry) => {
                Some(Sleep { address: self.0.seq.key().address(), expected: entry.read, bits: MOVABLE.get() })
            }
            State::Left(_) => None,
        }
    }

    /// Sleeps here, for a caller that has no frame of its own to sleep in.
    pub fn sleep_here(&self, waiting: &Waiting, deadline: Option<Deadline>) -> Option<Waited> {
        let sleep = self.sleep(waiting)?;
        Some(self.0.seq.wait_bits(sleep.expected, MOVABLE, deadline))
    }

    /// Says how a sleep ended.
    pub fn slept(&self, waiting: &mut Waiting, waited: Waited) {
        if let State::Waits(entry) = &mut waiting.0
            && let Some(left) = self.0.slept(&mut entry.read, entry.place, waited)
        {
            waiting.0 = State::Left(left);
        }
    }

    /// Ends a wait that is over. The caller acquires the mutex, and uses the condition variable no
    /// more.
    pub fn end_wait(&self, waiting: Waiting) -> Woken {
        let State::Left(left) = waiting.0 else {
            return Woken { wakeup: Wakeup::Notified, requeued: false };
        };
        if left.requeuing {
            self.0.outlast_requeuing();
        }
        Woken { wakeup: left.wakeup, requeued: left.requeued }
    }

    /// Ends a wait of a thread that was cancelled in its sleep. A notification that was meant for
    /// it goes to the others: to all, since one that came after it may be told first.
    pub fn cancel_wait(&self, mut waiting: Waiting) -> Woken {
        // The wake-up may have come before the cancellation.
        self.slept(&mut waiting, Waited::Woken);
        let takes_grant = matches!(&waiting.0, State::Left(left) if left.takes_grant);
        let woken = self.end_wait(waiting);
        if takes_grant {
            self.notify_all();
        }
        woken
    }

    /// Sets `REQUEUING` for a thread that looks at the mutex without a notification. False if no
    /// thread of this process waits, or another thread has set it.
    fn begin_requeuing(&self) -> bool {
        let mut counts = Counts(self.0.counts.load(Relaxed));
        while counts.waiting() > 0 && Sequence::<L>::is_own(counts) && !counts.is_requeuing() {
            let next = counts.with_requeuing();
            // Acquire: as (grant).
            match self.0.counts.compare_exchange(counts.0, next.0, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => counts = Counts(now),
            }
        }
        false
    }

    /// Wakes all sleepers, also those that were moved to the mutex. For a thread that is about to
    /// free the condition variable, and waits until all waiters have left.
    pub fn hurry(&self) {
        self.0.seq.key().wake(u32::MAX);
        if !self.begin_requeuing() {
            return;
        }
        if let Some(mutex) = self.0.target_mutex() {
            // SAFETY: the mutex lives while `REQUEUING` is set (Invariant 8).
            if let Some(key) = unsafe { &*mutex }.requeue_key() {
                key.wake_bits(u32::MAX, MOVABLE);
            }
        }
        self.0.end_requeuing();
    }
}
