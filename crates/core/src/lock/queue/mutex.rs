//! A mutex whose waiters stand in a queue: `FairMutex`, and the default mutex.
//!
//! | file | what of the protocol |
//! |---|---|
//! | `mutex.rs` | properties, states, invariants, orderings; how an arriving thread acquires, and a holder releases |
//! | `wait.rs` | how a waiter waits, contends, and leaves |
//! | `serve.rs` | what the queue-lock holder does |
//! | `mod.rs` | nodes and links, which know nothing of mutexes |
//! | `status.rs` | what a waiter is told |
//! | `condvar.rs` | the condition variable, which moves its waiters into this queue |
//! | `window.rs` | which waiters are awake. No invariant rests on it |
//!
//! The two locks differ in their [`Rule`]. *In order*: no thread passes the queue. *Barging*: an
//! arriving thread takes a free mutex, until one waiter has been overtaken for the bound.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - In order: a waiter that has queued acquires before each thread that queues or arrives later.
//! - Barging: the oldest waiter contends with arriving threads for the bound at most. Then the next
//!   release hands the mutex over to it. Waiters keep their order, also those with a deadline.
//! - A waiter whose time is up leaves. Of its time-out and its acquisition exactly one wins.
//! - One read-modify-write acquires and one releases, if no thread waits; barging also while one
//!   waits and is awake. A release never waits, and makes no system call for a waiter that is awake.
//! - The step that releases or grants is the last access (law 2 of ARCHITECTURE.md). Wake-ups that
//!   follow use addresses only.
//! - All-zero memory is an unlocked mutex. Nothing is allocated: a node is on its waiter's stack.
//!
//! # State
//! The word is the address of the newest node, and six bits ([`State`]). *Free* means not `LOCKED`,
//! and *open* that an arriving thread may take the mutex: in order, the word is zero; barging, it is
//! free and not `DUE`. The mutex is *owed* to the oldest waiter if there is one, and: in order,
//! always; barging, if it is `DUE`. Each transition is one compare-exchange:
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | open | `LOCKED` | an arriving thread | (take) |
//! | free | `LOCKED`, not `AWAKE` | the candidate | (take as candidate) |
//! | not open | the same with its node as the newest | an arriving thread, or a notification for its waiter | (enqueue) |
//! | not open; no waiters, `AWAKE`, `QUEUE_LOCKED` | `AWAKE` | an arriving thread, which becomes the candidate (barging) | (come forward) |
//! | zero | `AWAKE` | a notification, whose waiter becomes the candidate (barging) | (come forward) |
//! | `LOCKED` | not `LOCKED` | the holder, if there are no waiters, or the queue is locked, or the mutex is not owed and a candidate is `AWAKE` | (free) |
//! | `LOCKED`, one waiter, `SINGLE` | `LOCKED` alone | the holder, for that waiter | (hand over one) |
//! | `LOCKED`, owed, not `QUEUE_LOCKED` | `QUEUE_LOCKED` too | the holder, for the oldest waiter | (serve) |
//! | `LOCKED`, waiters, not owed, not `AWAKE`, not `QUEUE_LOCKED` | `QUEUE_LOCKED`, not `LOCKED` | the holder, which chooses a candidate | (serve free) |
//! | not `QUEUE_LOCKED` | `QUEUE_LOCKED` | a waiter that leaves; the candidate that stands back | (lock queue) |
//! | `QUEUE_LOCKED` | `LEAVERS` | a waiter that leaves | (ask to leave) |
//! | `QUEUE_LOCKED`, `LEAVERS` | not `LEAVERS` | the queue-lock holder, which removes the leavers then | (take leavers) |
//! | `QUEUE_LOCKED`, waiters | another newest node, or none | the queue-lock holder | (replace newest) |
//! | `QUEUE_LOCKED`, owed, free | `LOCKED` | the queue-lock holder, for the oldest waiter | (keep) |
//! | `QUEUE_LOCKED` | not `AWAKE`; `DUE` if the bound has passed | the candidate, whose node is the oldest now | (stand back) |
//! | `QUEUE_LOCKED`, not `LEAVERS` | not `QUEUE_LOCKED`; and as the queue-lock holder has chosen: nothing else; `LOCKED` and not `DUE`, for a granted waiter; `AWAKE`, for a candidate; not `LOCKED`, if it was kept for the oldest and the queue is empty | the queue-lock holder | (unlock queue) |
//! | `LOCKED`, `AWAKE` | not `AWAKE` | the candidate that gives up | (resign) |
//!
//! # The hand-over
//! A release of an owed mutex locks the queue and keeps `LOCKED`: no thread can acquire, and the
//! releasing thread owns the mutex for the oldest waiter. It writes that waiter's status, by one swap
//! (answer). Only then it does what others need: it links the next nodes, moves the window and
//! unlocks the queue. The mutex lives meanwhile, since another waiter is queued. If there is no other
//! waiter, (unlock queue) comes first, and then the answer.
//!
//! If the new holder releases meanwhile, (free) leaves the rest to the queue-lock holder.
//!
//! # The candidate
//! Barging, a release wakes no waiter while one is awake that will look at the word: the *candidate*.
//! It is in no queue, and `AWAKE` stands for it. An arriving thread that has spun in vain comes
//! forward if there is none and no waiter. Otherwise (unlock queue) of a release chooses the oldest
//! waiter: one system call, after which the other releases make none. So at most one woken waiter is
//! on its way, and none is woken to find that another was faster, but the candidate.
//!
//! The candidate polls, and either takes the mutex or stands back: its node becomes the oldest again,
//! and it sleeps. The next release chooses it again. It remembers when it was chosen first. If the
//! bound has passed since, it stands back with `DUE`, and polls its own status.
//!
//! # Invariants
//! Beside those of the queue (`mod.rs`):
//! 1. *At most one thread holds the mutex, or owns it for the oldest waiter.* `LOCKED` is set by
//!    (take), (take as candidate), (keep) and (unlock queue), which find it clear, and passed on by
//!    (serve) and the answer. Only its owner clears it.
//! 2. *No waiter is forgotten.* If a waiter is queued, one of four holds: a thread holds or owns the
//!    mutex, so that a release comes; `QUEUE_LOCKED` is set; a candidate is `AWAKE`; or the waiter has
//!    queued on a word that was so. For (free) and (unlock queue) leave a free mutex with waiters only
//!    with `QUEUE_LOCKED` or `AWAKE`. The candidate acquires, or leaves by (stand back) or (resign),
//!    both while `LOCKED` is set or the queue is locked by itself.
//! 3. *The queue-lock holder sees each release.* (unlock queue) fails if (free) came since it looked.
//!    If the mutex is owed then, it hands over; if no candidate is `AWAKE`, it chooses one.
//! 4. *The mutex lives while the queue is locked.* The queue-lock holder is a holder; or a waiter
//!    that leaves or stands back, whose own borrow lasts; or has waiters in the queue, or leavers that
//!    it has not answered. Each of them borrows the mutex until it is answered, and only the
//!    queue-lock holder answers.
//! 5. `DUE` implies a waiter, and no candidate. The candidate sets it as its node is the oldest. The
//!    next hand-over clears it, and so does (unlock queue) of an empty queue. While it is set, no
//!    candidate is chosen, and none comes forward, since there are waiters.
//! 6. `SINGLE` implies that no queue-lock holder has seen the queue since its only node came. So no
//!    link of it is in use, and [`Window`] names no node. (enqueue) on an empty queue sets the bit,
//!    each other (enqueue) and (lock queue) clear it.
//! 7. A waiter does not unwind from (enqueue) or (come forward) until it has the mutex or has left: a
//!    node or a bit would stay behind. If a panic comes, as of a wait that the kernel refuses, the
//!    process aborts.
//!
//! # How long a waiter waits, barging
//! Let `h` be the longest hold and `w` the time until a woken thread runs. The candidate acquires
//! within `bound + 2h + 2w` after it was chosen first: it is late by a sleep at most when the bound
//! passes. A waiter behind `k` others is chosen after they have acquired or left. So it waits for
//! `(k + 1) * (bound + 2h + 2w)`.
//!
//! # Ordering
//! - (free), (serve), (serve free) release; (take), (take as candidate), (keep) acquire: the word
//!   hands over directly. (answer) and the look of a waiter at its status hand over else.
//! - (enqueue) releases the node. Each look of a queue-lock holder at the word acquires, also that of
//!   a compare-exchange that fails. Links pass on with the queue lock: (unlock queue) releases, and
//!   (serve), (serve free), (lock queue) acquire.
//! - (ask to leave) releases `Leaving`, (take leavers) acquires it.
//! - (hand over one) releases, since the holder's work passes on by the answer; it acquires the node.
//! - (come forward), (resign) and (replace newest) order nothing. All transitions are
//!   read-modify-writes of one word, so each continues the releases before it.
//!
//! # Sources
//! H. Franke, "Fast user-level locks" (2002): fair locks by hand-over, and what they cost. W. Long,
//! "futex: Throughput-optimized (TO) futexes" (LKML, 2016), and Linux `kernel/locking/mutex.c`: the
//! first waiter contends, and asks for the hand-off in time. D. Dice, "Malthusian Locks" (2017): wake
//! nobody while one spins. The queue of the Rust standard library's `sys::sync::rwlock::queue`. Here:
//! one word for both orders, the candidate outside of the queue, the bound, and leaving.

use super::condvar::QueueCondvar;
use super::rule::{Room, Rule};
use super::window::{self, Window};
use super::word::{LOCKED, State};
use super::{Kind, Newest, Node};
use crate::lock::meter::{Event, Meter};
use crate::lock::policy::InOneProcess;
use crate::lock::spin::{self, Look, Spin};
use crate::lock::traits as raw;
use crate::sys::futex::{FutexKey, Local};
use crate::sys::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use crate::sys::sync::{AtomicPtr, set_bit, without_unwinding};
use crate::sys::time::Deadline;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

/// A mutex without data, whose waiters stand in a queue: the word, what its rule needs, and the
/// counters if the policy has any.
#[repr(C)]
pub struct QueueMutex<P: InOneProcess, R: Rule> {
    word: AtomicPtr<Node>,
    pub(super) room: R::Room,
    pub(super) meter: P::Meter,
    rule: PhantomData<fn() -> R>,
}

// SAFETY: the pointer is an atomic, and what it points to is accessed by the rules of the queue.
unsafe impl<P: InOneProcess, R: Rule> Send for QueueMutex<P, R> {}
// SAFETY: as above.
unsafe impl<P: InOneProcess, R: Rule> Sync for QueueMutex<P, R> {}

/// The word as the queue-lock holder has seen it last, acquiring.
pub(super) struct Seen<'a, P: InOneProcess, R: Rule> {
    pub(super) mutex: &'a QueueMutex<P, R>,
    pub(super) word: State,
}

impl<P: InOneProcess, R: Rule> Newest for Seen<'_, P, R> {
    fn newest(&mut self) -> *const Node {
        self.word.newest()
    }

    fn replace(&mut self, _newest: *const Node, next: *const Node) -> bool {
        self.change(self.word.with_newest(next), Acquire) // (replace newest)
    }

    fn window(&self) -> Option<&Window> {
        self.mutex.room.window()
    }
}

impl<P: InOneProcess, R: Rule> Seen<'_, P, R> {
    /// Changes the word to `next`; if it is another one by now, sees that.
    pub(super) fn change(&mut self, next: State, order: Ordering) -> bool {
        let changed = self.mutex.change(self.word, next, order);
        self.word = changed.err().unwrap_or(next);
        changed.is_ok()
    }
}

/// What a thread that has just locked the queue has done with the mutex.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Task {
    /// Nothing.
    Nothing,
    /// It owns the mutex for the oldest waiter.
    HandOver,
    /// It has released the mutex, and chooses a candidate.
    Choose,
}

impl<P: InOneProcess, R: Rule> QueueMutex<P, R> {
    crate::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self {
                word: AtomicPtr::new(ptr::null_mut()),
                room: crate::initial!(R::Room),
                meter: P::Meter::INIT,
                rule: PhantomData,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Whether the next release hands the mutex over to the oldest waiter. For tests.
    #[doc(hidden)]
    pub fn is_owed(&self) -> bool {
        Self::owes(self.state())
    }

    pub(super) fn state(&self) -> State {
        State(self.word.load(Relaxed))
    }

    /// Changes the word from `now` to `next`; the word as it is if that is not `now`.
    #[inline(always)]
    pub(super) fn change(&self, now: State, next: State, order: Ordering) -> Result<(), State> {
        self.word.compare_exchange(now.0, next.0, order, Acquire).map(drop).map_err(State)
    }

    /// Whether an arriving thread may take the mutex.
    #[inline(always)]
    pub(super) fn is_open(word: State) -> bool {
        if R::IN_ORDER { word == State::FREE } else { !word.is_locked() && !word.is_due() }
    }

    /// Whether the mutex is owed to the oldest waiter.
    pub(super) fn owes(word: State) -> bool {
        word.has_waiters() && (R::IN_ORDER || word.is_due())
    }

    /// (take) at once; the word as it is if that failed.
    ///
    /// One read-modify-write whatever the other bits are: to read the word first would move its cache
    /// line twice. (Two CPUs of an EPYC, 20 to 100 ns inside and outside: 0.7 of the rate.)
    #[inline(always)]
    fn take(&self) -> Result<(), State> {
        if R::IN_ORDER {
            return self.change(State::FREE, State::HELD, Acquire);
        }
        if set_bit(&self.word, LOCKED, Acquire) {
            return Err(self.state());
        }
        let word = self.state();
        if word.is_due() { self.give_back(word) } else { Ok(()) }
    }

    /// An arriving thread has taken a mutex that is owed to a waiter, and releases it.
    #[cold]
    fn give_back(&self, word: State) -> Result<(), State> {
        self.unlock_contended(word);
        Err(self.state())
    }

    /// (take) by an arriving thread that polls.
    fn look(&self) -> Look {
        let word = self.state();
        if !Self::is_open(word) {
            Look::Taken
        } else if self.change(word, word.locked(), Acquire).is_ok() {
            self.count_passing(word);
            Look::Acquired
        } else {
            Look::Beaten
        }
    }

    /// An arriving thread has taken the mutex, whose word was `word`, after it had found it taken.
    fn count_passing(&self, word: State) {
        let passes = word.has_waiters() || word.is_awake();
        self.meter.count(if passes { Event::Stolen } else { Event::Spun });
    }

    /// An arriving thread has found a mutex that was not open. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if !R::IN_ORDER && spin::backing_off::<P>(|| self.look()) {
            return true;
        }
        // Invariant 7.
        without_unwinding(|| {
            let node = Node::new(window::here(), 1);
            let acquired = self.lock_with(&node, deadline);
            node.take_back();
            acquired
        })
    }

    /// Queues with `node`, which no other thread knows yet, and waits.
    fn lock_with(&self, node: &Node, deadline: Option<Deadline>) -> bool {
        // It has taken a moment to get here: the mutex may be open.
        let mut word = self.state();
        // Before the node is queued: the cache line is here.
        let open = self.room.window().is_some_and(Window::is_open);
        loop {
            if Self::is_open(word) {
                match self.meter.arrive(|| self.change(word, word.locked(), Acquire)) {
                    Ok(()) => {
                        self.count_passing(word);
                        return true;
                    }
                    Err(now) => word = now,
                }
            } else if !R::IN_ORDER && !word.has_waiters() && !word.is_awake() && !word.is_queue_locked() {
                match self.change(word, word.awake(), Relaxed) {
                    Ok(()) => return self.wait(node, true, false, deadline), // (come forward)
                    Err(now) => word = now,
                }
            } else {
                let older = word.newest();
                // SAFETY: the node is this thread's, and not in the word yet.
                unsafe { Node::follow(node, older) };
                let alone = older.is_null();
                let next = Self::with_node(word, node);
                match self.meter.arrive(|| self.change(word, next, Release)) {
                    // (enqueue)
                    Ok(()) => return self.wait(node, false, R::IN_ORDER && (alone || open), deadline),
                    Err(now) => word = now,
                }
            }
        }
    }

    /// The word after (enqueue) of `node`.
    fn with_node(word: State, node: *const Node) -> State {
        let single = R::IN_ORDER && !word.has_waiters() && !word.is_queue_locked();
        let next = word.with_newest(node);
        if single { next.single() } else { next.not_single() }
    }

    /// Enqueues `node` for its thread, which was notified on a condition variable. If the mutex is
    /// free, it answers instead: `Notified`, in order; barging `Chosen`, if there is no candidate.
    /// Returns by what to wake the thread.
    ///
    /// # Safety
    /// The caller has detached `node`, and leaves it alone from now on. Its thread borrows the mutex
    /// until it is answered, and waits by `wait_moved` once it is notified.
    pub(super) unsafe fn admit(mutex: *const Self, node: *const Node) -> Option<FutexKey<Local>> {
        // SAFETY: the thread of the node borrows the mutex. It is used no more after the change.
        let this = unsafe { &*mutex };
        let mut word = this.state();
        let mut is_new = false;
        loop {
            if R::IN_ORDER && Self::is_open(word) {
                // SAFETY: the caller has detached the node, and it has no answer yet.
                return unsafe { Node::answer(node, Kind::Notified) };
            }
            let comes_forward = !R::IN_ORDER && word == State::FREE;
            if !comes_forward {
                // SAFETY: the node is the caller's, and not in the word yet.
                unsafe {
                    if !is_new {
                        Node::renew(node);
                        Node::mark_moved(node);
                        is_new = true;
                    }
                    Node::follow(node, word.newest());
                }
            }
            let next = if comes_forward { word.awake() } else { Self::with_node(word, node) };
            match this.change(word, next, Release) {
                // (come forward)
                // SAFETY: as above.
                Ok(()) if comes_forward => return unsafe { Node::answer(node, Kind::Chosen) },
                Ok(()) => return None, // (enqueue)
                Err(now) => word = now,
            }
        }
    }

    /// Releases a mutex with waiters, a candidate, or a locked queue.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut word: State) {
        loop {
            let free = word.unlocked();
            let (next, task) = if word.is_single() {
                (State::HELD, Task::Nothing) // (hand over one)
            } else if word.is_queue_locked() || !word.has_waiters() {
                (free, Task::Nothing) // (free)
            } else if Self::owes(word) {
                (word.queue_locked(), Task::HandOver) // (serve)
            } else if word.is_awake() {
                (free, Task::Nothing) // (free)
            } else {
                (free.queue_locked(), Task::Choose) // (serve free)
            };
            match self.change(word, next, AcqRel) {
                Ok(()) if task != Task::Nothing => return self.serve(Seen { mutex: self, word: next }, task),
                // The mutex may be gone.
                Ok(()) if word.is_single() => {
                    // SAFETY: (hand over one) has detached the node, and this thread answers once.
                    unsafe { Node::answer(word.newest(), Kind::Granted) }.map(|key| key.wake(1));
                    return;
                }
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }
}

impl<P: InOneProcess, R: Rule> raw::Metered for QueueMutex<P, R> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: InOneProcess, R: Rule> Default for QueueMutex<P, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: InOneProcess, R: Rule> fmt::Debug for QueueMutex<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueMutex").field(&self.state()).finish()
    }
}

crate::initial!([P: InOneProcess, R: Rule] QueueMutex<P, R> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing, and no address of the mutex is kept, so it may be forgotten and the mutex
//   moved or dropped: a node is queued only while its thread is inside of `lock` or `lock_until`.
//   These borrow the mutex, and do not unwind meanwhile (invariant 7).
unsafe impl<P: InOneProcess, R: Rule> raw::RawMutex for QueueMutex<P, R> {
    type Scope = Local;
    type Token = ();
    type Condvar = QueueCondvar<P, R>;
    const CONDVAR_NS: u32 = <P::Spin as Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if self.meter.arrive(|| self.take()).is_err() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let mut taken = self.meter.arrive(|| self.take());
        // Another thread may have changed the word of an open mutex.
        while !R::IN_ORDER
            && let Err(word) = taken
            && Self::is_open(word)
        {
            taken = self.change(word, word.locked(), Acquire);
        }
        if taken.is_ok() {
            self.meter.count(Event::Acquired);
        }
        taken.ok()
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
        // Without a look before, which would cost as much as in (take).
        // (free); from here on the mutex may be gone, if it succeeds.
        if let Err(word) = self.change(State::HELD, State::FREE, Release) {
            self.unlock_contended(word);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = self.state();
        word.is_locked() || Self::owes(word)
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<P: InOneProcess> raw::RawMutexFair for QueueMutex<P, super::InOrder> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { raw::RawMutex::unlock(self, ()) };
    }
}

// A wait that ends early leaves as one whose time is up.
impl<P: InOneProcess, R: Rule> raw::RawInterruptible for QueueMutex<P, R> {}
