//! The protocol of a [`Queue`]: a ring of messages under a robust mutex, and two counts.
//!
//! # Properties
//! - Each message that was pushed is popped once, whole, and in the order of the pushes.
//! - If a thread dies at any step of a push, its message is in the queue whole, or not at all. If
//!   it dies at any step of a pop, it has taken the message, or the message is the next one still.
//!   The same holds for a slice of messages: all that one call moves, or none of them.
//! - A thread that waits for a message sleeps only while there is none, or while another thread is
//!   about to look that has been woken for it. If one thread dies, no other sleeps for ever. It may
//!   sleep for [`RECHECK`](crate::slots::RECHECK) if the death was between a grant and its wake-up,
//!   or if the thread that grants is stopped there.
//! - A thread that was granted and is stopped (`SIGSTOP`) is one that is about to look. The message
//!   stays, beside others that sleep, until it goes on, dies, or another message is pushed.
//! - The same holds for a thread that waits for a free place.
//!
//! # State
//! `pushed` and `popped` count the messages since the region was created. Message number `n` is in
//! place `n` modulo the capacity. Each transition is one store by the holder of `mutex`, the last
//! step of what it ends:
//!
//! | transition | by | label |
//! |---|---|---|
//! | `pushed` increased by the number of the messages that were written behind it | a thread that pushes | (push) |
//! | `popped` increased by the number of the messages that were copied out | a thread that pops | (pop) |
//! | `closed` set or cleared | a thread that closes, or opens again | (close) |
//!
//! Threads that wait for a message sleep on `arrived`, those that wait for a place on `freed`. All
//! of it changes under the mutex.
//!
//! # Invariants
//! 1. The messages from `popped` to `pushed` are whole, and not more than the capacity. A thread
//!    writes to the other places only, and before (push).
//! 2. So the holder of the mutex may die at any step, and leaves nothing to repair. An acquisition
//!    that tells of a death is one like others.
//! 3. A transition that a waiter sleeps for comes after the notification, and both under the mutex.
//!    The waiter comes to the mutex behind the transition. If the thread dies between the two, the
//!    waiter finds nothing and waits again. The other order would let a waiter sleep beside a
//!    message: no thread need come to the mutex and be told of the death.
//!    The wake-ups of a push and a pop come after the mutex: otherwise the waiter could take the
//!    thread's CPU, and find the mutex held. Those of (close), which is rare, come under it. If the
//!    thread dies before the wake-up, the next one that acquires is told of a death and wakes the
//!    waiter. If it had released the mutex, the waiter looks by itself.
//! 4. A waiter enqueues under the mutex when it has seen that there is no message. So while there
//!    is one, no waiter comes, and the waiters that still sleep are of one row. The first of them
//!    watches the one before it, which was granted: `condvar.rs` says so.
//! 5. While there is a message and a waiter that was not granted, the granted one before it has not
//!    popped yet. If it dies, the waiter returns. If it pops and leaves a message, it grants the
//!    next one (pass on). If it finds no message, none is there to be waited beside.
//! 6. What 4 and 5 say of messages and `arrived` holds of free places and `freed`.
//!
//! # Ordering
//! The mutex orders all accesses of its holders. (push) and (pop) also release, for the compiler,
//! whose order counts at a death. A thread that looks without the mutex (`len`, a spinning waiter)
//! reads no message. It reads `popped`, `pushed` and `popped` again, and each load acquires. (pop)
//! follows the pushes of its messages. So `pushed` is not less than the `popped` that was read
//! before it. If the second `popped` is the same, `pushed` is of a moment at which it was `popped`.
//!
//! # Sources
//! The bounded buffer of two conditions is C. A. R. Hoare's ("Monitors", 1974). The order of the
//! notifications is this project's.

use super::{PopError, PushError, Queue};
use crate::robust::condvar::Condvar;
use crate::robust::mutex::raw::RawMutex;
use crate::robust::mutex::{LockError, LockResult, MutexGuard, Refused};
use crate::robust::queue::{Granted, Patience};
use crate::slots::Member;
use core::mem::MaybeUninit;
use ulocks_core::spin::{self, Spin};
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::sync::{AtomicU64, UnsafeCell, interruption_point};
use ulocks_core::{Policy, futex};

type Held<'a, P> = MutexGuard<'a, (), RawMutex<P>>;

impl<T: Copy + Send, const CAPACITY: usize, P: Policy<Scope = futex::Global>> Queue<T, CAPACITY, P> {
    pub(super) fn push_one(
        &self,
        me: &Member<'_>,
        message: T,
        patience: Patience,
    ) -> Result<(), PushError<T>> {
        let pushed = self.push_some(me, core::slice::from_ref(&message), patience);
        pushed.map(drop).map_err(|error| error.map(|()| message))
    }

    #[inline]
    pub(super) fn push_some(
        &self,
        me: &Member<'_>,
        messages: &[T],
        patience: Patience,
    ) -> Result<usize, PushError<()>> {
        let refused = |refused| PushError::Refused((), refused);
        let mut held = self.enter(me, patience, || !self.is_full()).map_err(refused)?;
        let mut over = matches!(patience, Patience::Never);
        loop {
            if self.is_closed() {
                return Err(PushError::Closed(()));
            }
            let room = CAPACITY - self.len();
            if room > 0 || messages.is_empty() {
                return Ok(self.put(me, held, messages, room));
            }
            if over {
                return Err(PushError::Full(()));
            }
            over = self.sleep(me, &mut held, &self.freed, patience).map_err(refused)?;
        }
    }

    pub(super) fn pop_one(&self, me: &Member<'_>, patience: Patience) -> Result<T, PopError> {
        let mut taken = None;
        self.pop_some(me, 1, patience, |message| taken = Some(message))?;
        taken.ok_or(PopError::Empty)
    }

    #[inline]
    pub(super) fn pop_some(
        &self,
        me: &Member<'_>,
        most: usize,
        patience: Patience,
        take: impl FnMut(T),
    ) -> Result<usize, PopError> {
        let mut held = self.enter(me, patience, || !self.is_empty()).map_err(PopError::Refused)?;
        let mut over = matches!(patience, Patience::Never);
        loop {
            let there = self.len();
            if there > 0 || most == 0 {
                return Ok(self.take(me, held, most.min(there), there, take));
            }
            if self.is_closed() {
                return Err(PopError::Closed);
            }
            if over {
                return Err(PopError::Empty);
            }
            over = self.sleep(me, &mut held, &self.arrived, patience).map_err(PopError::Refused)?;
        }
    }

    /// Writes the first messages to free places, of which there are `room`, makes (push), and
    /// releases the mutex. How many they were.
    #[inline]
    fn put(&self, me: &Member<'_>, held: Held<'_, P>, messages: &[T], room: usize) -> usize {
        let begin = self.pushed.load(Relaxed);
        let number = messages.len().min(room);
        for (message, nth) in messages[..number].iter().zip(0..) {
            // SAFETY: the caller has the mutex, and the place is free, so no other thread has a
            // pointer to it.
            self.place(begin.wrapping_add(nth)).with_mut(|place| unsafe { (*place).write(*message) });
            interruption_point();
        }
        let now = begin.wrapping_add(number as u64); // (push)
        let left = (number < room).then_some(&self.freed);
        self.publish(me, held, (&self.pushed, now), (&self.arrived, number), left);
        number
    }

    /// Copies the first `number` messages out, of which there are `there`, makes (pop), and
    /// releases the mutex.
    #[inline]
    fn take(
        &self,
        me: &Member<'_>,
        held: Held<'_, P>,
        number: usize,
        there: usize,
        mut take: impl FnMut(T),
    ) -> usize {
        let begin = self.popped.load(Relaxed);
        for nth in 0..number as u64 {
            // SAFETY: the caller has the mutex, so no thread writes. The message is whole:
            // invariant 1. If memory was overwritten, it is another `T`: in a region each bit
            // pattern is one.
            take(self.place(begin.wrapping_add(nth)).with(|place| unsafe { (*place).assume_init_read() }));
            interruption_point();
        }
        let now = begin.wrapping_add(number as u64); // (pop)
        let left = (number < there).then_some(&self.arrived);
        self.publish(me, held, (&self.popped, now), (&self.freed, number), left);
        number
    }

    /// (push) or (pop): a count becomes `now`, and the mutex is released. So many waiters are
    /// notified before (invariant 3), and one of the others if something is `left` to it (pass on).
    #[inline]
    fn publish(
        &self,
        me: &Member<'_>,
        held: Held<'_, P>,
        (count, now): (&AtomicU64, u64),
        (condvar, number): (&Condvar<P>, usize),
        left: Option<&Condvar<P>>,
    ) {
        let granted = condvar.grant(me, number);
        let passed_on = left.and_then(|condvar| condvar.grant(me, 1));
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        count.store(now, Release);
        drop(held);
        granted.map(Granted::wake);
        passed_on.map(Granted::wake);
    }

    #[inline]
    fn place(&self, number: u64) -> &UnsafeCell<MaybeUninit<T>> {
        const { assert!(CAPACITY > 0, "a queue has room for a message") };
        &self.places[(number % CAPACITY as u64) as usize]
    }

    /// Acquires the mutex. A thread that would have to wait spins before, until `may_pass` or the
    /// queue is closed: so it leaves the mutex to those that it waits for.
    #[inline]
    fn enter<'a>(
        &'a self,
        me: &'a Member<'_>,
        patience: Patience,
        may_pass: impl Fn() -> bool,
    ) -> Result<Held<'a, P>, Refused> {
        if !may_pass() && !matches!(patience, Patience::Never) && me.may_poll_for_any() {
            let budget = spin::budget::<P::Scope>(P::Spin::QUEUE_NS);
            spin::until(budget, || may_pass() || self.is_closed());
        }
        self.lock(me)
    }

    /// Acquires the mutex.
    #[inline]
    pub(super) fn lock<'a>(&'a self, me: &'a Member<'_>) -> Result<Held<'a, P>, Refused> {
        self.mended(me, self.mutex.lock(me))
    }

    /// Waits on `condvar`; whether the time is over.
    #[cold]
    #[inline(never)]
    fn sleep<'a>(
        &'a self,
        me: &'a Member<'_>,
        held: &mut Held<'a, P>,
        condvar: &Condvar<P>,
        patience: Patience,
    ) -> Result<bool, Refused> {
        match condvar.release_and_wait(held, patience.deadline()) {
            Ok(in_time) => return Ok(!in_time),
            Err(LockError::OwnerDied(_)) => self.mend(me, held),
            Err(LockError::NotRecoverable) => *held = self.mended(me, Err(LockError::NotRecoverable))?,
            Err(LockError::Refused(refused)) => return Err(refused),
        }
        Ok(false)
    }

    /// The mutex, held, also after a death: invariant 2.
    #[inline]
    fn mended<'a>(
        &'a self,
        me: &'a Member<'_>,
        how: LockResult<'a, (), RawMutex<P>>,
    ) -> Result<Held<'a, P>, Refused> {
        let mut held = match how {
            Ok(held) => return Ok(held),
            Err(LockError::OwnerDied(held)) => held,
            Err(LockError::NotRecoverable) => self.mutex.reset(me)?,
            Err(LockError::Refused(refused)) => return Err(refused),
        };
        self.mend(me, &mut held);
        Ok(held)
    }

    /// After a death nothing is to be repaired. But waiters that the dead thread granted may sleep.
    #[cold]
    fn mend(&self, me: &Member<'_>, held: &mut Held<'_, P>) {
        held.mark_consistent();
        self.arrived.wake_granted(me);
        self.freed.wake_granted(me);
    }
}
