//! The protocol of [`Semaphore`](crate::Semaphore): Franke's usema, a count and a strict queue.
//!
//! # Properties
//! - At most as many permits are out as were put in. What happened before a release happens before
//!   the return of the acquisition that gets its permits.
//! - Strict order: a waiter is served before each thread that arrives after it, also if the waiter
//!   wants many permits and the thread few. While there is a waiter, no arriving thread takes
//!   permits, and `try_acquire` fails.
//! - Without waiters, an acquisition is one read-modify-write and a release is one, and neither
//!   makes a system call.
//! - A release never waits, not even for another release. A signal handler may release, whatever it
//!   interrupts, unless tasks wait.
//! - The read-modify-write that publishes the permits is the last access of a release (law 2 of
//!   ARCHITECTURE.md). The thread that acquires them may free or unmap the semaphore at once, while
//!   the release is still returning. (glibc's bug 12674 was about this.)
//! - A wait can be timed. Either the waiter gets its permits or it times out, and no permit is
//!   lost.
//! - A semaphore can be closed, for good. All waiters leave without permits then, and so does each
//!   thread that arrives. Who has permits keeps them, and may release them. A close never waits.
//! - All-zero memory is a semaphore without permits. Nothing is allocated. Without waiters no
//!   address is stored.
//!
//! # State
//! Three words. One has the counts ([`State`]): one comparison tells an arriving thread whether
//! there are permits *and* no waiters. The others are the queue, of nodes on the waiters' stacks
//! with a futex each, and its window. `queue.rs` has its protocol. The queue-lock holder takes the
//! permits for a waiter, before it grants.
//!
//! # Transitions
//! | what | word | by | step |
//! |---|---|---|---|
//! | take | permits - n, if there are no waiters and n permits | an arriving thread | (take) |
//! | give | permits + n, if that is at most the maximum | a releasing thread | (give) |
//! | come | waiters + 1, if (take) is not possible and the semaphore is open | an arriving thread | (come) |
//! | go | waiters - n, with permits if the semaphore is open, or without | the queue-lock holder | (settle) |
//! | close | `CLOSED` set; it is never cleared | a closing thread | (close) |
//!
//! # Invariants
//! 1. The permits in the word and the permits that are out are together what was put in. Each
//!    transition that takes permits is one read-modify-write that finds as many.
//! 2. While there is a waiter, permits are taken for waiters only. (take) needs a word without
//!    waiters. A waiter is counted there from (come), before it has its place in the queue, until
//!    it goes.
//! 3. If there is a waiter and the permits suffice for the head waiter, or the semaphore is closed,
//!    then a thread is at work that will find out.
//!
//! # Which thread comes first
//! A waiter gets its place in the queue a moment after (come), by (push) of `queue.rs`; what that
//! takes it makes ready before. So two waiters that come at the same time may get their places in
//! either order. One that is preempted between the two steps is overtaken by those that come
//! meanwhile. While a waiter is counted, no thread gets permits but from the queue.
//!
//! # Ordering
//! (give) is Release and (take) is Acquire. All transitions are read-modify-writes. So (take) reads
//! (give), or what follows (give) in its release sequence. A look at the count is Acquire for the
//! same reason: of a closed semaphore it is the only way to learn that all permits are back. The
//! other pairs are in `queue.rs`, and those of (close) in `CLOSING.md`.
//!
//! # Sources
//! H. Franke, "Lightweight userspace semaphores" (LKML, 26 February 2002): the count in user
//! memory, the kernel for sleep only. M. Kirkwood, H. Franke, R. Russell, "Fuss, Futexes and
//! Furwocks" (OLS 2002): what the kernel offers for it. T. Riegel, glibc's `nptl/sem_wait.c` (2015,
//! bug 12674): count and waiters in one word, so that a post touches the semaphore once. Here: the
//! order, the queue, and the release of several permits.

use super::queue::Queue;
use super::word::State;
use crate::{Closed, TooManyPermits};
use core::fmt;
use ulocks_core::Private;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::{self, Node};
use ulocks_core::raw::Metered;
use ulocks_core::spin::Lost;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

/// The semaphore without guards: three words, and the counters if the policy has any.
///
/// Fairness, memory, signals and forks are those of [`Semaphore`](crate::Semaphore).
#[repr(C)]
pub struct RawSemaphore<P: InOneProcess = Private> {
    pub(super) state: AtomicU64,
    pub(super) queue: Queue,
    pub(super) meter: P::Meter,
}

/// How a waiter has arrived.
pub(super) enum Arrival {
    /// It has its permits.
    Acquired,
    /// It has none, and does not wait: the semaphore is closed, or its time is up.
    GaveUp,
    /// It is counted as a waiter, (come). It was the `first`, if there was no other.
    Came { first: bool },
}

impl<P: InOneProcess> RawSemaphore<P> {
    /// The most permits there can be: 1,073,741,823.
    pub const MAX_PERMITS: u32 = State::MAX_PERMITS;
    /// The most threads and tasks that can wait at the same time: 1,073,741,823.
    pub const MAX_WAITERS: u32 = State::MAX_WAITERS;

    ulocks_core::const_fn! {
        /// A semaphore with `permits` permits; without any, its bytes are all zero.
        ///
        /// # Panics
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: u32) -> Self {
            assert!(permits <= State::MAX_PERMITS, "a semaphore has at most 1073741823 permits");
            Self { state: AtomicU64::new(permits as u64), queue: Queue::new(), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Takes `count` permits together, and waits in the queue as long as that takes. Zero permits
    /// are taken at once, whatever the queue is.
    ///
    /// # Panics
    /// If the semaphore is closed, or is while the thread waits. If `count` is more than
    /// [`MAX_PERMITS`](Self::MAX_PERMITS): the wait would never end. If
    /// [`MAX_WAITERS`](Self::MAX_WAITERS) threads wait already.
    #[inline]
    #[track_caller]
    pub fn acquire(&self, count: u32) {
        if !self.take(count) {
            self.wait_or_panic(count);
        }
        self.meter.permitted();
    }

    /// Takes `count` permits together, and waits in the queue until then, or until the semaphore is
    /// closed.
    ///
    /// # Errors
    /// If the semaphore is closed: then it took none.
    ///
    /// # Panics
    /// If `count` is more than [`MAX_PERMITS`](Self::MAX_PERMITS). If
    /// [`MAX_WAITERS`](Self::MAX_WAITERS) threads wait already.
    #[inline]
    #[track_caller]
    pub fn acquire_unless_closed(&self, count: u32) -> Result<(), Closed> {
        let taken = self.take(count) || self.wait_for_long(count);
        self.meter.ended_with(taken);
        if taken { Ok(()) } else { Err(Closed) }
    }

    /// Takes `count` permits if there are as many, no waiters, and the semaphore is open. True if
    /// it took them.
    #[inline]
    pub fn try_acquire(&self, count: u32) -> bool {
        let taken = self.take(count) || self.gives_none(count);
        if taken {
            self.meter.permitted();
        }
        taken
    }

    /// Takes `count` permits together, and waits in the queue until `deadline` at most, or until
    /// the semaphore is closed. True if it took them.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_until(&self, count: u32, deadline: Deadline) -> bool {
        let taken = self.take(count) || self.wait(count, Some(deadline));
        self.meter.ended_with(taken);
        taken
    }

    /// Puts `count` permits in, and serves waiters. Never waits.
    ///
    /// # Errors
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS): then nothing has changed.
    #[inline]
    pub fn release(&self, count: u32) -> Result<(), TooManyPermits> {
        let state = State(self.state.load(Relaxed));
        if let (Some(next), true) = (state.given(count), state.is_plain())
            && self.change(state, next)
        {
            return Ok(());
        }
        self.release_contended(count)
    }

    /// Closes the semaphore for good: waiters leave without permits, and later acquisitions fail.
    /// Permits that are out can be released as before. Never waits.
    ///
    /// To close it again changes nothing.
    ///
    /// Unlike a release, this may touch the semaphore after a waiter has left: the semaphore has to
    /// be there until this returns.
    #[cold]
    pub fn close(&self) {
        self.close_queue();
    }

    /// Whether the semaphore was closed. If so, what happened before that happens before this
    /// returns.
    #[inline]
    pub fn is_closed(&self) -> bool {
        State(self.state.load(Acquire)).is_closed()
    }

    /// How many permits are free at this moment. While there are waiters, these permits are for the
    /// head waiter. What happened before the releases that are counted happens before this returns.
    #[inline]
    pub fn available(&self) -> u32 {
        State(self.state.load(Acquire)).permits()
    }

    /// How many threads and tasks wait at this moment, or are about to get their places.
    #[inline]
    pub fn waiters(&self) -> u32 {
        State(self.state.load(Relaxed)).waiters()
    }

    /// Whether a waiter has its place in the queue, so that a thread that arrives now gets one
    /// behind it. For tests.
    #[doc(hidden)]
    pub fn is_queued(&self) -> bool {
        self.queue.is_used()
    }

    /// (give) on a semaphore without waiters.
    #[inline(always)]
    fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from.0, to.0, Release, Relaxed).is_ok()
    }

    /// (take).
    #[inline(always)]
    pub(super) fn take(&self, count: u32) -> bool {
        let mut state = State(self.state.load(Relaxed));
        while let Some(next) = state.taken(count) {
            match self.meter.arrive(|| self.state.compare_exchange(state.0, next.0, Acquire, Relaxed)) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    /// Whether `count` is none, which an open semaphore gives whatever the queue is.
    #[inline]
    fn gives_none(&self, count: u32) -> bool {
        count == 0 && !self.is_closed()
    }

    /// An arriving thread that has found too few permits, or a waiter, or a closed semaphore: comes
    /// (come), and waits. False if `deadline` passed first, or the semaphore is closed.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait(&self, count: u32, deadline: Option<Deadline>) -> bool {
        // These may ask the kernel. A waiter that is counted comes to its place at once.
        let (node, is_in_window) = (Node::new(queue::here(), count), self.queue.is_in_window());
        match self.arrive(count, || deadline.is_some_and(|deadline| deadline.has_passed())) {
            Arrival::Acquired => true,
            Arrival::GaveUp => false,
            Arrival::Came { first } => self.wait_in_queue(&node, first || is_in_window, deadline),
        }
    }

    /// A waiter that has found too few permits, or a waiter, or a closed semaphore: takes the
    /// permits all the same, or comes (come), unless it `gives_up`.
    #[inline]
    #[track_caller]
    pub(super) fn arrive(&self, count: u32, gives_up: impl FnOnce() -> bool) -> Arrival {
        assert!(
            count <= State::MAX_PERMITS,
            "{count} permits are more than a semaphore has: at most {}",
            State::MAX_PERMITS
        );
        if self.gives_none(count) {
            return Arrival::Acquired;
        }
        self.meter.count(Event::Contended);
        if gives_up() {
            return Arrival::GaveUp;
        }
        let mut state = State(self.state.load(Relaxed));
        let mut lost = Lost::default();
        loop {
            if state.is_closed() {
                // What happened before (close) happens before the error. A fence would do, but
                // ThreadSanitizer does not know fences.
                self.state.load(Acquire);
                return Arrival::GaveUp;
            }
            if state.taken(count).is_some() {
                if self.take(count) {
                    self.meter.count(Event::Spun);
                    return Arrival::Acquired;
                }
                state = State(self.state.load(Relaxed));
                continue;
            }
            let Some(next) = state.with_waiter() else {
                panic!("{} waiters wait for this semaphore: no more can", State::MAX_WAITERS)
            };
            // (come)
            match self.state.compare_exchange(state.0, next.0, Relaxed, Relaxed) {
                Ok(_) => return Arrival::Came { first: state.is_plain() },
                Err(_) => state = lost.again(|| State(self.state.load(Relaxed))),
            }
        }
    }

    /// [`wait`](Self::wait) without a deadline, for which the caller would need a place on its
    /// stack. Not cold: LLVM would then merge the two ways out of (take), and add a branch to it.
    #[inline(never)]
    #[track_caller]
    fn wait_for_long(&self, count: u32) -> bool {
        self.wait(count, None)
    }

    /// The same for a caller that has no way to say that the semaphore is closed.
    #[inline(never)]
    #[track_caller]
    fn wait_or_panic(&self, count: u32) {
        if !self.wait(count, None) {
            self.meter.gave_up();
            panic!("the semaphore is closed: `acquire_unless_closed` returns that as an error")
        }
    }

    #[cold]
    #[inline(never)]
    fn release_contended(&self, count: u32) -> Result<(), TooManyPermits> {
        if count == 0 {
            return Ok(());
        }
        self.give_to_queue(count)
    }
}

impl<P: InOneProcess> Metered for RawSemaphore<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: InOneProcess> Default for RawSemaphore<P> {
    /// Without permits.
    fn default() -> Self {
        Self::new(0)
    }
}

impl<P: InOneProcess> fmt::Debug for RawSemaphore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawSemaphore").field(&State(self.state.load(Relaxed))).finish()
    }
}
