//! The protocol of [`Semaphore`](crate::Semaphore): Franke's usema, a count and a line in which nobody is overtaken.
//!
//! # Properties
//! - Never more permits out than there are; what happened before a release happens before the acquisition that its
//!   permits go to.
//! - Strict order: whoever is in line is served before everybody who comes to the line after it, also if it wants many
//!   permits and they want few. Neither an arrival nor `try_acquire` takes permits while somebody is in line.
//! - Nobody there to wait or to be woken: one read-modify-write to acquire and one to release, and no system call.
//! - A release never waits, not even for another release: it may be called in a signal handler, whatever it interrupts.
//! - The read-modify-write that publishes the permits is the last touch of a release. Who acquires them may free or
//!   unmap the semaphore at once, also while the release is still under way (law 2; what glibc's bug 12674 was about).
//! - A wait can be timed. Exactly one of permits and timeout wins, and no permit is lost.
//! - All-zero is a semaphore without permits. Nothing is allocated; no address is stored while nobody waits, and none
//!   at all in shared memory.
//!
//! # State
//! Sixteen bytes: a word with the counts ([`State`]), so that one comparison tells an arrival whether permits are there
//! *and* nobody waits for them, and eight bytes for the line, which is another for each scope:
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
//! 1. The permits in the word and the permits that are out are together what was put in: each transition that takes is
//!    one read-modify-write that finds as many.
//! 2. While somebody is in line, only the line takes: (T) needs a word without waiters, and whoever is in line is
//!    counted there from (C), which is before it gets its place, until it goes.
//! 3. If somebody is in line and the permits suffice for the first, then somebody is at work who will find out.
//!
//! # What is to come first
//! The place in line is had a moment after (C), so two threads that come at the same time may get their places in
//! either order; a thread that comes after another one's (C) can only get a place behind it, or wait with it for the
//! order to be decided. It cannot get permits before it.
//!
//! # Ordering
//! (G) is Release and (T) is Acquire. All transitions are read-modify-writes, so (T) reads (G) or what follows it in the
//! release sequence. The other pairs are with their files.
//!
//! # Sources
//! H. Franke, "Lightweight userspace semaphores" (LKML, 26 February 2002): the count in user memory, the kernel for
//! nothing but sleep. M. Kirkwood, H. Franke, R. Russell, "Fuss, Futexes and Furwocks" (OLS 2002): what the kernel offers for it.
//! T. Riegel, glibc's `nptl/sem_wait.c` (2015, bug 12674): count and waiters in one word, so that posting touches the
//! semaphore once. Here: the order, the line, and the release of many.

use super::line::Line;
use super::word::State;
use crate::TooManyPermits;
use core::fmt;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::raw::Metered;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private};

/// The semaphore without guards: two words, and the counters if the policy has any.
///
/// Fairness, memory, signals and forks are those of [`Semaphore`](crate::Semaphore).
pub type RawSemaphore<P = Private> = Protocol<P, { seeded::NOTHING }>;

/// The bugs that the models must find, one at a time, and two variants that are sound. The semaphore proper has none of
/// them: the comparisons with `BUG` are decided at compile time.
#[doc(hidden)]
pub mod seeded {
    /// No bug.
    pub const NOTHING: u8 = 0;
    /// (T) is a load and a store.
    pub const TAKES_IN_TWO: u8 = 1;
    /// (T) does not look whether somebody waits.
    pub const OVERTAKES: u8 = 2;
    /// (G) checks the bound on a value that may be old, and then adds.
    pub const CHECKS_THEN_ADDS: u8 = 3;
    /// (T) learns nothing.
    pub const RELAXED_TAKE: u8 = 4;
    /// (G) publishes nothing.
    pub const RELAXED_GIVE: u8 = 5;

    /// Private: whoever wants few is served although the first wants more.
    pub const SMALL_FIRST: u8 = 10;
    /// Private: a waiter that has pushed its node tells nobody.
    pub const PUSHES_SILENTLY: u8 = 11;
    /// Private: a server takes the news out of the word after its look.
    pub const FORGETS_NEWS: u8 = 12;
    /// Private: a server leaves although the word has changed.
    pub const COMMITS_BLINDLY: u8 = 13;
    /// Private: permits are granted before the server has left.
    pub const GRANTS_FIRST: u8 = 14;
    /// Private: a sleeper is granted permits and not woken.
    pub const GRANTS_SILENTLY: u8 = 15;
    /// Private: a grant publishes nothing.
    pub const RELAXED_GRANT: u8 = 16;
    /// Private: a waiter that is granted permits when it wants to leave leaves without them.
    pub const LEAVES_GRANT: u8 = 17;
    /// Private: a waiter that leaves stays counted.
    pub const LEAVES_COUNTED: u8 = 18;
    /// Private: a waiter that wants out while another serves does not say so.
    pub const LEAVES_SILENTLY: u8 = 19;

    /// Shared: a release does not disturb who is about to sleep.
    pub const NO_DISTURBANCE: u8 = 30;
    /// Shared: a release disturbs after (G).
    pub const DISTURBS_LATE: u8 = 31;
    /// Shared: the word does not say for which turn it is armed.
    pub const NO_NOTE: u8 = 32;
    /// Shared: the next in line is not woken for its turn.
    pub const ADVANCES_SILENTLY: u8 = 33;
    /// Shared: a waiter that leaves does not look whether its turn has come meanwhile.
    pub const LEAVES_UNSEEN: u8 = 34;
    /// Shared: the turn stops at a place that was left.
    pub const STOPS_AT_LEFT: u8 = 35;
    /// Shared: the first leaves, and nobody gets the turn.
    pub const LEAVES_TURN: u8 = 36;
    /// Shared: a waiter that leaves marks its place by what the turn was when it looked.
    pub const MARKS_BLINDLY: u8 = 37;

    /// Shared, and sound: groups of one ticket, and nobody near but the first.
    pub const FIRST_IS_NEAR: u8 = 40;
    /// `FIRST_IS_NEAR`, and those who are near now are not woken.
    pub const CROSSES_SILENTLY: u8 = 41;
    /// `FIRST_IS_NEAR`, and they are woken without a new stamp.
    pub const NEVER_STAMPS: u8 = 42;
    /// `FIRST_IS_NEAR`, and the stamp changes before the turn.
    pub const STAMPS_FIRST: u8 = 43;
    /// `FIRST_IS_NEAR`, and who is far looks at the turn before it reads the stamp, and not after it.
    pub const LOOKS_AT_TURN_FIRST: u8 = 44;
    /// `FIRST_IS_NEAR`, and who reads the stamp learns nothing.
    pub const RELAXED_LOOK: u8 = 45;
    /// `FIRST_IS_NEAR`, and the new stamp publishes nothing.
    pub const RELAXED_STAMP: u8 = 46;
    /// Shared, and sound: groups of two tickets, and four that are near.
    pub const PAIRS: u8 = 50;
    /// `PAIRS`, and only one of those who are near now is woken.
    pub const CALLS_ONE: u8 = 51;
    /// `PAIRS`, and twice as many sleep on the turn as there are bits.
    pub const SHARES_BITS: u8 = 52;
}

/// [`RawSemaphore`] with the seeded bug `BUG`.
#[repr(C)]
pub struct Protocol<P: Policy, const BUG: u8> {
    pub(super) state: AtomicU64,
    pub(super) line: Line<P::Scope>,
    pub(super) meter: P::Meter,
}

#[cfg(test)]
const _: () = assert!(size_of::<RawSemaphore<ulocks_core::Shared>>() == size_of::<RawSemaphore<Private>>());

impl<P: Policy, const BUG: u8> Protocol<P, BUG> {
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
            Self { state: AtomicU64::new(permits as u64), line: Line::new(), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Takes `count` permits at once, waiting in line as long as it takes. None are had at once, without a look at the
    /// line.
    ///
    /// # Panics
    /// If `count` is more than [`MAX_PERMITS`](Self::MAX_PERMITS), for which one would wait for ever; if
    /// [`MAX_WAITERS`](Self::MAX_WAITERS) threads wait already.
    #[inline]
    pub fn acquire(&self, count: u32) {
        if !self.take(count) {
            self.stand_in_line(count, None);
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

    /// Takes `count` permits at once, waiting in line until `deadline` at the most. True if it took them.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_until(&self, count: u32, deadline: Deadline) -> bool {
        let taken = self.take(count) || self.stand_in_line(count, Some(deadline));
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
        if let (Some(next), true) = (state.given(count), state.has_no_line())
            && BUG != seeded::CHECKS_THEN_ADDS
            && self.change(state, next)
        {
            return Ok(());
        }
        self.release_contended(count)
    }

    /// How many permits are free at this moment. While somebody waits they are for the first in line.
    #[inline]
    pub fn available(&self) -> u32 {
        State(self.state.load(Relaxed)).permits()
    }

    /// How many threads wait at this moment.
    #[inline]
    pub fn waiters(&self) -> u32 {
        State(self.state.load(Relaxed)).waiters()
    }

    /// Whether somebody has a place in line, so that whoever comes now gets one behind it. For tests.
    #[doc(hidden)]
    pub fn is_queued(&self) -> bool {
        if <P::Scope as Scope>::PRIVATE {
            self.line.queue().is_used()
        } else {
            self.line.tickets().are_used()
        }
    }

    /// (G) on a semaphore nobody waits for.
    #[inline(always)]
    fn change(&self, from: State, to: State) -> bool {
        let order = if BUG == seeded::RELAXED_GIVE { Relaxed } else { Release };
        self.state.compare_exchange(from.0, to.0, order, Relaxed).is_ok()
    }

    /// (T).
    #[inline(always)]
    fn take(&self, count: u32) -> bool {
        let order = if BUG == seeded::RELAXED_TAKE { Relaxed } else { Acquire };
        let mut state = State(self.state.load(if BUG == seeded::TAKES_IN_TWO { order } else { Relaxed }));
        while let Some(next) = Self::after_take(state, count) {
            if BUG == seeded::TAKES_IN_TWO {
                self.state.store(next.0, Relaxed);
                return true;
            }
            match self.meter.arrive(|| self.state.compare_exchange(state.0, next.0, order, Relaxed)) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        count == 0
    }

    #[inline(always)]
    fn after_take(state: State, count: u32) -> Option<State> {
        if BUG == seeded::OVERTAKES {
            return (state.permits() >= count).then(|| State(state.0 - u64::from(count)));
        }
        state.taken(count)
    }

    /// An arrival that has found no permits, or somebody in line: comes (C), and waits. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn stand_in_line(&self, count: u32, deadline: Option<Deadline>) -> bool {
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
            if Self::after_take(state, count).is_some() {
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
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        if <P::Scope as Scope>::PRIVATE {
            self.wait_in_queue(count, state.has_no_line(), deadline)
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
        if BUG == seeded::CHECKS_THEN_ADDS {
            State(self.state.load(Relaxed)).given(count).ok_or(TooManyPermits)?;
            self.state.fetch_add(u64::from(count), AcqRel);
            return Ok(());
        }
        if <P::Scope as Scope>::PRIVATE { self.give_to_queue(count) } else { self.give_to_tickets(count) }
    }
}

impl<P: Policy, const BUG: u8> Metered for Protocol<P, BUG> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy, const BUG: u8> Default for Protocol<P, BUG> {
    /// Without permits.
    fn default() -> Self {
        Self::new(0)
    }
}

impl<P: Policy, const BUG: u8> fmt::Debug for Protocol<P, BUG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawSemaphore").field(&State(self.state.load(Relaxed))).finish()
    }
}
