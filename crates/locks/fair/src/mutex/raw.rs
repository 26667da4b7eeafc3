//! The protocol of [`FairMutex`](crate::FairMutex): a word that names a queue of waiters, and a
//! hand-over from each holder to the next.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Strict first in, first out. A queued waiter holds the mutex before each thread that queues
//!   later, and before each thread that arrives while it is queued. An arriving thread takes the
//!   mutex only if it is free *and* the queue is empty.
//! - A waiter whose time is up leaves the queue. Of its grant and its timeout exactly one wins.
//! - One read-modify-write to acquire and one to release without contention. The word is eight
//!   bytes. A waiter's node is on its stack, so nothing is allocated. A guard that is forgotten
//!   strands no node: nodes live only inside of a call that waits. No node knows the address of the
//!   mutex.
//! - The release never waits, not even for a thread that was preempted while it works on the queue.
//! - The step that releases, or grants, is the last access (law 2 of ARCHITECTURE.md). The wake-ups
//!   that follow use addresses only.
//!
//! # State
//! The word is a `State`: the newest node, `LOCKED`, `QUEUE_LOCKED`, `LEAVERS`. Each transition is
//! one compare-exchange:
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | `FREE` | `LOCKED` | an arriving thread, or `try_lock` | (take) |
//! | anything else | the same with the node of the arriving thread as the newest | an arriving thread | (enqueue) |
//! | `LOCKED` alone | `FREE` | the holder | (free) |
//! | `LOCKED`, waiters | `QUEUE_LOCKED`, waiters | the holder, which becomes the queue-lock holder | (serve) |
//! | `LOCKED`, `QUEUE_LOCKED` | `QUEUE_LOCKED` | the holder; the queue-lock holder does the rest | (pass on) |
//! | not `QUEUE_LOCKED` | `QUEUE_LOCKED` | a waiter that leaves | (lock queue) |
//! | `QUEUE_LOCKED` | `QUEUE_LOCKED`, `LEAVERS` | a waiter that leaves | (ask to leave) |
//! | `QUEUE_LOCKED`, `LEAVERS` | `QUEUE_LOCKED` | the queue-lock holder, which then removes the leavers | (take leavers) |
//! | `QUEUE_LOCKED`, waiters | the same without the newest | the queue-lock holder | (detach newest) |
//! | `QUEUE_LOCKED`, not `LEAVERS`, and `LOCKED` or no waiters | without `QUEUE_LOCKED` | the queue-lock holder | (unlock queue) |
//! | `QUEUE_LOCKED`, not `LEAVERS`, not `LOCKED` | `LOCKED`, one waiter less | the queue-lock holder, for the oldest | (hand over) |
//!
//! `queue/mod.rs` describes the nodes, `queue/status.rs` the futex in each. (answer), the answer,
//! is described there.
//!
//! # The hand-over
//! The queue-lock holder finds the mutex released and the queue not empty. It detaches the oldest
//! node and chooses a waiter behind it to be *woken ahead*. It sets `LOCKED` and releases the queue
//! lock in one step (hand over), grants by one swap of the oldest waiter's status (answer), and
//! wakes the two if they were asleep. So the second one is on its way while the first is inside.
//! `ahead.rs` says which waiter is chosen. A waiter spins only if it found the queue empty, or was
//! woken ahead. A waiter that has parked again is woken when it is granted. No waiter is woken that
//! has not parked.
//!
//! The waiter that is to run on the CPU of the queue-lock holder is woken last: a wake-up may take
//! the CPU away.
//!
//! Both spin for [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS): a hold and a wake-up fit into
//! that.
//!
//! # Invariants
//! Beside those of the queue:
//! 1. At most one thread holds the mutex: `LOCKED` is set by (take), from zero, and by (hand over)
//!    for one waiter, and cleared by the holder.
//! 2. While the queue is not empty and no thread holds the mutex, `QUEUE_LOCKED` is set. It is
//!    cleared by (unlock queue) or (hand over) only. So a release that finds it set, (pass on),
//!    leaves the hand-over to the queue-lock holder: (unlock queue) and (hand over) fail until that
//!    has seen the release.
//! 3. While `QUEUE_LOCKED` is set and `LOCKED` is not, no thread holds the mutex. So no thread may
//!    free it, and the queue-lock holder may touch the word until (unlock queue) or (hand over). If
//!    `LOCKED` is set at (unlock queue), the queue-lock holder is a waiter that leaves: its own
//!    borrow keeps the mutex alive.
//! 4. A waiter is granted at most once, by the queue-lock holder that detached its node.
//! 5. A waiter that is woken ahead has no claim: its turn comes by its position alone.
//! 6. A waiter does not unwind from (enqueue) until the answer: the queue names its node. If
//!    something panics there, such as a wait that the kernel refuses, the process aborts. A
//!    queue-lock holder does not unwind either, since a refused wake-up aborts. So each leaver is
//!    answered.
//!
//! # Ordering
//! - (free), (serve), (pass on) release and (take) acquires: the word hands over directly.
//! - (serve), (pass on) release and the queue-lock holder's look at the word acquires. (answer)
//!   passes that on.
//! - (enqueue) releases the node, the queue-lock holder's look at the word acquires it. Links pass
//!   on with the queue lock: (unlock queue) and (hand over) release, (serve) and (lock queue)
//!   acquire. All are read-modify-writes of one word, so each continues the releases before it.
//! - (ask to leave) releases `Leaving`, (take leavers) acquires it.
//! - (detach newest), (unlock queue) and (hand over) acquire nothing. They succeed on a word that
//!   the queue-lock holder has written, or has read acquiring when it failed. While the queue lock
//!   is held, other threads only add a newest node, clear `LOCKED`, or set `LEAVERS`, so no value
//!   comes back. If (ask to leave) writes the value that was there, `LEAVERS` is set, and (take
//!   leavers) follows.
//! - (lock queue), (take leavers) and (detach newest) release nothing: links are read by the next
//!   queue-lock holder only, after (unlock queue) or (hand over).
//!
//! # Sources
//! H. Franke, "Fast user-level locks" (2002): fair locks by hand-over, and what they cost. Here:
//! the strict order, the release that leaves its work to a queue-lock holder, leaving, and
//! wake-ahead.

use super::ahead;
use super::word::State;
use crate::queue::{self, Departures, Kind, Newest, Node, Status};
use core::fmt;
use core::ptr;
use ulocks_core::futex::Waited;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, raw};

/// The raw mutex, without data: a word, and the counters if the policy has any.
#[repr(C)]
pub struct RawFairMutex<P: InOneProcess = Private> {
    word: AtomicPtr<Node>,
    meter: P::Meter,
}

// SAFETY: the pointer is an atomic, and what it points to is accessed by the rules of the queue.
unsafe impl<P: InOneProcess> Send for RawFairMutex<P> {}
// SAFETY: as above.
unsafe impl<P: InOneProcess> Sync for RawFairMutex<P> {}

/// The word as the queue-lock holder has seen it last, acquiring.
struct Seen<'a, P: InOneProcess> {
    mutex: &'a RawFairMutex<P>,
    word: State,
}

impl<P: InOneProcess> Newest for Seen<'_, P> {
    fn newest(&mut self) -> *const Node {
        self.word.newest()
    }

    fn replace(&mut self, _newest: *const Node, next: *const Node) -> bool {
        let next = self.word.with_newest(next);
        // (detach newest)
        match self.mutex.change(self.word, next, Relaxed) {
            Ok(()) => self.word = next,
            Err(now) => {
                self.word = now;
                return false;
            }
        }
        true
    }
}

impl<P: InOneProcess> RawFairMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self { word: AtomicPtr::new(ptr::null_mut()), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Changes the word from `now` to `next`; the word as it is if that is not `now`.
    #[inline(always)]
    fn change(&self, now: State, next: State, order: Ordering) -> Result<(), State> {
        self.word.compare_exchange(now.0, next.0, order, Acquire).map(drop).map_err(State)
    }

    /// (take): takes the mutex if it is free and the queue is empty; the word as it is otherwise.
    #[inline(always)]
    fn take(&self) -> Result<(), State> {
        self.word.compare_exchange(State::FREE.0, State::HELD.0, Acquire, Relaxed).map(drop).map_err(State)
    }

    /// An arriving thread did not find the mutex free: it queues, and waits. False if `deadline`
    /// passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        // Invariant 6.
        without_unwinding(|| {
            let node = Node::new(ahead::here(), 1);
            self.lock_with(&node, deadline)
        })
    }

    /// Queues, and waits, with `node`, which no other thread knows yet.
    fn lock_with(&self, node: &Node, deadline: Option<Deadline>) -> bool {
        let mut word = State(self.word.load(Relaxed));
        let alone = loop {
            if word == State::FREE {
                match self.meter.arrive(|| self.take()) {
                    Ok(()) => return true,
                    Err(now) => word = now,
                }
            } else {
                let older = word.newest();
                // SAFETY: the node is this thread's, and not in the word yet.
                unsafe { Node::follow(node, older) };
                let next = word.with_newest(node);
                match self.meter.arrive(|| self.change(word, next, Release)) {
                    Ok(()) => break older.is_null(), // (enqueue)
                    Err(now) => word = now,
                }
            }
        };
        let granted = self.await_turn(node, alone, deadline);
        node.take_back();
        granted
    }

    /// Waits in the queue; `alone` if that was empty before. False if `deadline` passed and the
    /// waiter has left.
    fn await_turn(&self, node: &Node, alone: bool, deadline: Option<Deadline>) -> bool {
        let mut slept = false;
        loop {
            let (here, mut seen) = (ahead::here(), node.look());
            if (alone || seen.is(Kind::WokenAhead)) && !seen.holder_cpu().is(here) {
                let knows = seen.holder_cpu().is_known() && here.is_known();
                spin::head_waiter::<P>(slept && !knows, || {
                    seen = node.look();
                    seen.is(Kind::Granted) || seen.holder_cpu().is(here)
                });
            }
            if seen.is(Kind::Granted) {
                if !slept {
                    self.meter.count(Event::Spun);
                }
                return true;
            }
            let parked = Status::parked(ahead::here());
            if node.status.compare_exchange(seen.0, parked.0, Relaxed, Relaxed).is_err() {
                continue;
            }
            slept = true;
            if !self.sleep(node, parked, deadline) {
                return self.leave(node);
            }
        }
    }

    /// Sleeps until the status is not `parked` any more; false if `deadline` passed first.
    fn sleep(&self, node: &Node, parked: Status, deadline: Option<Deadline>) -> bool {
        loop {
            self.meter.count(Event::Slept);
            let waited = node.status.wait(parked.0, deadline);
            if node.status.load(Relaxed) != parked.0 {
                // Counted here: the waking thread may have had no mutex left to count in.
                self.meter.count(Event::Woke);
                return true;
            }
            if waited == Waited::TimedOut {
                return false;
            }
        }
    }

    /// A waiter whose time is up leaves the queue, unless it is granted first: then true.
    #[cold]
    fn leave(&self, node: &Node) -> bool {
        let Some(leaving) = node.ask_to_leave() else { return true };
        let mut word = State(self.word.load(Relaxed));
        while node.look() == leaving {
            if word.is_queue_locked() {
                match self.change(word, word.with_leavers(), Release) {
                    Ok(()) => break, // (ask to leave)
                    Err(now) => word = now,
                }
            } else {
                match self.change(word, word.queue_locked(), Acquire) {
                    Err(now) => word = now,
                    // (lock queue)
                    Ok(()) => {
                        let mut seen = Seen { mutex: self, word: word.queue_locked() };
                        // SAFETY: this thread holds the queue lock, and the node is its own.
                        let removed = unsafe { queue::remove(&mut seen, node) };
                        self.serve_queue(seen);
                        if removed {
                            return false;
                        }
                        break; // another thread detached it, and is about to answer
                    }
                }
            }
        }
        node.await_answer(leaving)
    }

    /// Works on the queue, releases the queue lock, and answers the nodes it has detached. The
    /// caller has set `QUEUE_LOCKED`.
    fn serve_queue(&self, mut seen: Seen<'_, P>) {
        let (mut ahead, mut grants_here) = (None, false);
        let mut gone = Departures::new();
        // Detached already, because it was not alone in the queue.
        let mut chosen: *const Node = ptr::null();
        let granted = loop {
            let word = seen.word;
            if word.has_leavers() {
                match self.change(word, word.without_leavers(), Acquire) {
                    // (take leavers)
                    Ok(()) => {
                        seen.word = word.without_leavers();
                        // SAFETY: this thread holds the queue lock, and answers below.
                        unsafe { queue::remove_leavers(&mut seen, &mut gone) };
                    }
                    Err(now) => seen.word = now,
                }
                continue;
            }
            let newest = word.newest();
            let mut next = word.queue_unlocked().without_leavers();
            let mut granted = chosen;
            if !chosen.is_null() {
                next = next.locked();
            } else if !newest.is_null() && !word.is_locked() {
                // SAFETY: this thread holds the queue lock and has read the word acquiring.
                unsafe {
                    let oldest = queue::complete(newest);
                    next = next.locked();
                    granted = oldest;
                    // Before (hand over), since the next queue-lock holder may ask.
                    Node::claim(oldest);
                    if oldest == newest {
                        next = State::HELD;
                    } else {
                        let second = Node::newer(oldest);
                        queue::detach(oldest, newest, oldest);
                        let holder = Status((*oldest).status.load(Relaxed)).last_cpu();
                        ahead = ahead::wake_ahead(second, newest, holder);
                        grants_here = holder.is(ahead::here());
                        chosen = oldest;
                    }
                }
            }
            // (unlock queue), (hand over); from (hand over) on, the mutex may be gone.
            match self.change(word, next, Release) {
                Ok(()) => break granted,
                Err(now) => seen.word = now,
            }
        };
        let granted = if granted.is_null() {
            None
        } else {
            // SAFETY: this thread has detached the node.
            unsafe { Node::answer(granted, Kind::Granted) }
        };
        // A waiter that is to run on this CPU may take the CPU when it is woken.
        let wakes = if grants_here { [ahead, granted] } else { [granted, ahead] };
        // A refused wake-up aborts, so the leavers are answered in any case.
        wakes.into_iter().flatten().for_each(|key| _ = key.wake(1));
        gone.answer_each(Kind::Removed);
    }

    /// (serve), (pass on): releases the mutex with a queue that is not empty, or while a waiter
    /// leaves.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut word: State) {
        loop {
            let serves = !word.is_queue_locked() && !word.newest().is_null();
            let next = if serves { word.unlocked().queue_locked() } else { word.unlocked() };
            match self.change(word, next, AcqRel) {
                // Otherwise the mutex may be gone.
                Ok(()) if serves => return self.serve_queue(Seen { mutex: self, word: next }),
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }
}

impl<P: InOneProcess> raw::Metered for RawFairMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: InOneProcess> Default for RawFairMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: InOneProcess> fmt::Debug for RawFairMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawFairMutex").field(&State(self.word.load(Relaxed))).finish()
    }
}

ulocks_core::initial!([P: InOneProcess] RawFairMutex<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing, and no address of the mutex is kept, so it may be forgotten and the mutex
//   moved or dropped: a node is queued only while its thread is inside of `lock` or `lock_until`.
//   These borrow the mutex, and do not unwind meanwhile (invariant 6).
unsafe impl<P: InOneProcess> raw::RawMutex for RawFairMutex<P> {
    type Scope = P::Scope;
    type Token = ();
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if self.meter.arrive(|| self.take()).is_err() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.meter.arrive(|| self.take()).is_ok();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.meter.arrive(|| self.take()).is_ok()
            || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        // (free); from here on the mutex may be gone, if it succeeds.
        let released = self.word.compare_exchange(State::HELD.0, State::FREE.0, Release, Relaxed);
        if let Err(word) = released {
            self.unlock_contended(State(word));
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = State(self.word.load(Relaxed));
        word.is_locked() || !word.newest().is_null()
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<P: InOneProcess> raw::RawMutexFair for RawFairMutex<P> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { raw::RawMutex::unlock(self, ()) };
    }
}
