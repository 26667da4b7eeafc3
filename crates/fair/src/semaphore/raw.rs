//! The protocol of [`Semaphore`](crate::Semaphore): Franke's usema, a count and a line in which
//! nobody is overtaken.
//!
//! # Properties
//! - Never more permits out than there are; what happened before a release happens before the
//!   acquisition that its permits go to.
//! - Strict order: whoever is in line is served before everybody who comes to the line after it,
//!   also if it wants many permits and they want few. Neither an arrival nor `try_acquire` takes
//!   permits while somebody is in line.
//! - Nobody there to wait or to be woken: one read-modify-write to acquire and one to release, and
//!   no system call.
//! - A release never waits, not even for another release: it may be called in a signal handler,
//!   whatever it interrupts.
//! - The read-modify-write that publishes the permits is the last touch of a release. Who acquires
//!   them may free or unmap the semaphore at once, also while the release is still under way (law
//!   2; what glibc's bug 12674 was about).
//! - A wait can be timed. Exactly one of permits and timeout wins, and no permit is lost.
//! - All-zero is a semaphore without permits. Nothing is allocated; no address is stored while
//!   nobody waits, and none at all in shared memory.
//!
//! # State
//! Sixteen bytes: a word with the counts ([`State`]), so that one comparison tells an arrival
//! whether permits are there *and* nobody waits for them, and eight bytes for the line, which is
//! another for each scope:
//!
//! | scope | the line | who takes the permits for a waiter | file |
//! |---|---|---|---|
//! | private | nodes on the waiters' stacks, one futex each | whoever serves the line; the waiter finds them granted | `private.rs` |
//! | shared | tickets and two futexes | the first in line itself | `shared.rs` |
//!
//! # Transitions
//! | what | word | by | label |
//! |---|---|---|---|
//! | take | permits - n, if nobody is in line and there are n | an arrival | (T) |
//! | give | permits + n, if that does not exceed the maximum | a release | (G) |
//! | come | waiters + 1, if (T) is not possible | an arrival | (C) |
//! | go | waiters - 1, with or without permits | the line | (S4) (L3) (L4) |
//!
//! # Invariants
//! 1. The permits in the word and the permits that are out are together what was put in: each
//!    transition that takes is one read-modify-write that finds as many.
//! 2. While somebody is in line, only the line takes: (T) needs a word without waiters, and whoever
//!    is in line is counted there from (C), which is before it gets its place, until it goes.
//! 3. If somebody is in line and the permits suffice for the first, then somebody is at work who
//!    will find out.
//!
//! # What is to come first
//! The place in line is had a moment after (C), so two threads that come at the same time may get
//! their places in either order; a thread that comes after another one's (C) can only get a place
//! behind it, or wait with it for the order to be decided. It cannot get permits before it.
//!
//! # Ordering
//! (G) is Release and (T) is Acquire. All transitions are read-modify-writes, so (T) reads (G) or
//! what follows it in the release sequence. The other pairs are with their files.
//!
//! # Sources
//! H. Franke, "Lightweight userspace semaphores" (LKML, 26 February 2002): the count in user
//! memory, the kernel for nothing but sleep. M. Kirkwood, H. Franke, R. Russell, "Fuss, Futexes and
//! Furwocks" (OLS 2002): what the kernel offers for it. T. Riegel, glibc's `nptl/sem_wait.c` (2015,
//! bug 12674): count and waiters in one word, so that posting touches the semaphore once. Here: the
//! order, the line, and the release of many.

use super::waiters::Waiters;
use super::word::State;
use crate::TooManyPermits;
use core::fmt;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::raw::Metered;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private};

/// The semaphore without guards: two words, and the counters if the policy has any.
///
/// Fairness, memory, signals and forks are those of [`Semaphore`](crate::Semaphore).
#[repr(C)]
pub struct RawSemaphore<P: Policy = Private> {
    pub(super) state: AtomicU64,
    pub(super) waiters: Waiters<P::Scope>,
    pub(super) meter: P::Meter,
}

#[cfg(test)]
const _: () = assert!(size_of::<RawSemaphore<ulocks_core::Shared>>() == size_of::<RawSemaphore<Private>>());

impl<P: Policy> RawSemaphore<P> {
    /// The most permits there can be: 1,073,741,823.
    pub const MAX_PERMITS: u32 = State::MAX_PERMITS;
    /// The most threads that can wait at the same time: 65,523.
    pub const MAX_WAITERS: u32 = State::MAX_WAITERS;

    ulocks_core::const_fn! {
        /// A semaphore with `permits` permits; without any, its bytes are all zero.
        ///
        /// # Panics
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: u32) -> Self {
            assert!(permits <= State::MAX_PERMITS, "a semaphore has at most 1073741823 permits");
            Self { state: AtomicU64::new(permits as u64), waiters: Waiters::new(), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Takes `count` permits at once, waiting in line as long as it takes. None are had at once,
    /// without a look at the line.
    ///
    /// # Panics
    /// If `count` is more than [`MAX_PERMITS`](Self::MAX_PERMITS), for which one would wait for
    /// ever; if [`MAX_WAITERS`](Self::MAX_WAITERS) threads wait already.
    #[inline]
    pub fn acquire(&self, count: u32) {
        if !self.take(count) {
            self.wait(count, None);
        }
        self.meter.count(Event::Acquired);
    }

    /// Takes `count` permits at once if they are there and nobody waits. True if it took them.
    #[inline]
    pub fn try_acquire(&self, count: u32) -> bool {
        let taken = self.take(count);
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken
    }

    /// Takes `count` permits at once, waiting in line until `deadline` at the most. True if it took
    /// them.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_until(&self, count: u32, deadline: Deadline) -> bool {
        let taken = self.take(count) || self.wait(count, Some(deadline));
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken
    }

    /// Puts `count` permits in, and serves those who wait. Never waits.
    ///
    /// # Errors
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS): then nothing has changed.
    #[inline]
    pub fn release(&self, count: u32) -> Result<(), TooManyPermits> {
        let state = State(self.state.load(Relaxed));
        if let (Some(next), true) = (state.given(count), state.has_no_waiters())
            && self.change(state, next)
        {
            return Ok(());
        }
        self.release_contended(count)
    }

    /// How many permits are free at this moment. While somebody waits they are for the first in
    /// line.
    #[inline]
    pub fn available(&self) -> u32 {
        State(self.state.load(Relaxed)).permits()
    }

    /// How many threads wait at this moment.
    #[inline]
    pub fn waiters(&self) -> u32 {
        State(self.state.load(Relaxed)).waiters()
    }

    /// Whether somebody has a place in line, so that whoever comes now gets one behind it. For
    /// tests.
    #[doc(hidden)]
    pub fn is_queued(&self) -> bool {
        if <P::Scope as Scope>::PRIVATE {
            self.waiters.queue().is_used()
        } else {
            self.waiters.tickets().are_used()
        }
    }

    /// (G) on a semaphore nobody waits for.
    #[inline(always)]
    fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from.0, to.0, Release, Relaxed).is_ok()
    }

    /// (T).
    #[inline(always)]
    fn take(&self, count: u32) -> bool {
        let mut state = State(self.state.load(Relaxed));
        while let Some(next) = state.taken(count) {
            match self.meter.arrive(|| self.state.compare_exchange(state.0, next.0, Acquire, Relaxed)) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        count == 0
    }

    /// An arrival that has found no permits, or somebody in line: comes (C), and waits. False if
    /// `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn wait(&self, count: u32, deadline: Option<Deadline>) -> bool {
        assert!(
            count <= State::MAX_PERMITS,
            "{count} permits are more than a semaphore has: at most {}",
            State::MAX_PERMITS
        );
        self.meter.count(Event::Contended);
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return false;
        }
        let mut state = State(self.state.load(Relaxed));
        loop {
            if state.taken(count).is_some() {
                if self.take(count) {
                    self.meter.count(Event::Spun);
                    return true;
                }
                state = State(self.state.load(Relaxed));
                continue;
            }
            let Some(next) = state.with_waiter() else {
                panic!("{} threads wait for this semaphore: no more can", State::MAX_WAITERS)
            };
            // (C)
            // Mutant: Acquire -> Relaxed: for waiters 32 tickets behind; no model has as many.
            match self.state.compare_exchange(state.0, next.0, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        if <P::Scope as Scope>::PRIVATE {
            self.wait_in_queue(count, state.has_no_waiters(), deadline)
        } else {
            self.wait_with_ticket(count, deadline)
        }
    }

    #[cold]
    #[inline(never)]
    fn release_contended(&self, count: u32) -> Result<(), TooManyPermits> {
        if count == 0 {
            return Ok(());
        }
        if <P::Scope as Scope>::PRIVATE { self.give_to_queue(count) } else { self.give_to_tickets(count) }
    }
}

impl<P: Policy> Metered for RawSemaphore<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> Default for RawSemaphore<P> {
    /// Without permits.
    fn default() -> Self {
        Self::new(0)
    }
}

impl<P: Policy> fmt::Debug for RawSemaphore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawSemaphore").field(&State(self.state.load(Relaxed))).finish()
    }
}
