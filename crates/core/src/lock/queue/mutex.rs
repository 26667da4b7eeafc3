//! A mutex whose waiters stand in a queue: `FairMutex`, the default mutex, and `Calock`.
//!
//! | file | what of the protocol |
//! |---|---|
//! | `mutex.rs` | properties, states, invariants, orderings; how an arriving thread acquires, and a holder releases |
//! | `wait.rs` | how a waiter waits, for how long, contends, and leaves |
//! | `serve.rs` | what the queue-lock holder does |
//! | `mod.rs` | nodes and links, which know nothing of mutexes |
//! | `departures.rs` | nodes that are detached and not answered yet; how leavers are found |
//! | `status.rs` | what a waiter is told |
//! | `window.rs` | in order: which waiters are awake, and which is the oldest |
//! | `plan.rs` | barging: whether one thread is faster alone, and how it guesses the word |
//! | `task.rs`, `wake.rs`, `TASKS.md` | waiters that are tasks, and how waiters are woken |
//! | `condvar.rs` | the condition variable, which moves its waiters into this queue |
//!
//! The locks differ in their [`Rule`]. *In order*: no thread passes the queue. *Barging*: an
//! arriving thread takes a free mutex, until one waiter has been overtaken for the bound. *Culled*
//! is barging, too, and a waiter that contends in vain naps. So does each barging lock while one
//! thread is faster alone.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - In order: a waiter that has queued acquires before each thread that queues or arrives later.
//! - Barging: the oldest waiter contends with arriving threads for the bound at most. Then the next
//!   release hands the mutex over to it. Waiters keep their order, also those with a deadline.
//! - A waiter whose time is up leaves. Of its time-out and its acquisition exactly one wins.
//! - One read-modify-write acquires and one releases, if no thread waits, or one thread is active
//!   alone. A release never waits, and makes no system call for a waiter that is awake.
//! - The step that releases or grants is the last access (law 2 of ARCHITECTURE.md). Wake-ups that
//!   follow use addresses only.
//! - All-zero memory is an unlocked mutex. Nothing is allocated: a node is on its waiter's stack.
//!
//! # State
//! The word is the address of the newest node, and six bits ([`State`]). *Free* means not `LOCKED`.
//! *Open* means that an arriving thread may take the mutex: it is free and has no waiters, in
//! order; it is free and not `DUE`, barging. The mutex is *owed* to the oldest waiter if there is
//! one, and: in order, always; barging, if it is `DUE` and there is no candidate. Each transition
//! is one read-modify-write:
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | open | `LOCKED` | an arriving thread | (take) |
//! | free, `DUE` | `LOCKED` | an arriving thread, which has not looked, and releases at once | (give back) |
//! | free | `LOCKED`, not `AWAKE`, not `DUE` | the candidate | (take as candidate) |
//! | not open | its node is the newest. In order: `SINGLE` if it is alone and the queue is not locked, else not `SINGLE` | an arriving thread, or a notification for its waiter | (enqueue) |
//! | not open, none of waiters, `AWAKE` and `QUEUE_LOCKED` | `AWAKE` | an arriving thread, which becomes the candidate; barging | (come forward) |
//! | zero | `AWAKE` | a notification, whose waiter becomes the candidate; barging | (come forward) |
//! | `LOCKED` | free | the holder, if the queue is locked or has no waiters, or the mutex is not owed and a candidate is `AWAKE`. Barging, if the queue is locked and nobody `AWAKE`: `NOTED` too | (free) |
//! | `LOCKED`, `SINGLE` | `LOCKED` alone | the holder, for the only waiter | (hand over one) |
//! | `LOCKED`, owed, not `QUEUE_LOCKED` | `QUEUE_LOCKED` too, not `SINGLE` | the holder, which owns the mutex for the oldest waiter | (serve) |
//! | `LOCKED`, waiters, not owed, neither `AWAKE` nor `QUEUE_LOCKED` | `QUEUE_LOCKED`, free | the holder, which chooses a candidate | (serve free) |
//! | not `QUEUE_LOCKED` | `QUEUE_LOCKED`, not `SINGLE` | a waiter that leaves; the candidate that stands back, if the mutex is not free | (lock queue) |
//! | `QUEUE_LOCKED` | `LEAVERS` | a waiter that leaves | (ask to leave) |
//! | `QUEUE_LOCKED`, `LEAVERS` | not `LEAVERS` | the queue-lock holder, which removes the leavers then | (take leavers) |
//! | `QUEUE_LOCKED` | another newest node, or none | the queue-lock holder | (replace newest) |
//! | `QUEUE_LOCKED`, owed, free | `LOCKED` | the queue-lock holder, which owns the mutex for the oldest waiter | (keep) |
//! | `AWAKE` | `DUE` | the candidate, when the bound has passed | (claim) |
//! | `QUEUE_LOCKED`, `AWAKE` | not `AWAKE` | the candidate, whose node is the oldest now | (stand back) |
//! | `LOCKED`, `AWAKE` | not `AWAKE`, not `DUE` | the candidate that gives up | (resign) |
//! | `QUEUE_LOCKED`, not `LEAVERS` | not `QUEUE_LOCKED`, not `NOTED`, and as the next table says | the queue-lock holder | (unlock queue) |
//!
//! What the queue-lock holder does, if no waiter asks to leave; the first line that holds:
//!
//! | it finds | it does |
//! |---|---|
//! | it owns the mutex for the oldest waiter; none is left | (unlock queue) makes the mutex free |
//! | it owns the mutex; one waiter is left | (unlock queue) without that waiter, and grants it |
//! | it owns the mutex; several are left | grants the oldest, and begins again. In order, it answers first: see below |
//! | free and owed | (keep), and begins again. In order with one waiter, (unlock queue) does both |
//! | barging; waiters, no candidate, not `DUE`; a release came, or it is free | (unlock queue) without the oldest waiter, with `AWAKE`; chooses that waiter |
//! | anything else | (unlock queue) |
//!
//! # The hand-over
//! A release of an owed mutex locks the queue and keeps `LOCKED`: no thread can acquire, and the
//! releasing thread owns the mutex for the oldest waiter. It writes that waiter's status, by one
//! swap (answer). Only then it does what others need: it links the next nodes, moves the window and
//! unlocks the queue. The mutex lives meanwhile, since another waiter is queued. If there is no
//! other waiter, (unlock queue) comes first, and then the answer.
//!
//! If the new holder releases meanwhile, (free) leaves the rest to the queue-lock holder, which
//! hands over once more. That takes a section shorter than the work on the queue. So no release
//! waits. But a waiter may wait for a queue-lock holder that was preempted, although that holds no
//! mutex.
//!
//! # The candidate
//! Barging, a release wakes no waiter while one is awake that will look at the word: the
//! *candidate*. It is in no queue, and `AWAKE` stands for it. An arriving thread that has spun in
//! vain comes forward if there is none and no waiter. Otherwise the release of a mutex with waiters
//! chooses the oldest: one system call, after which the other releases make none. So at most one
//! woken waiter is on its way.
//!
//! The candidate polls, and either takes the mutex or stands back: its node becomes the oldest
//! again, and it sleeps. The next release chooses it again. It remembers when it found the mutex
//! taken first. If the bound has passed since, it sets `DUE` (claim): then the present holder is
//! the last to have overtaken it. It polls on, and stands back with `DUE` at last: then the mutex
//! is owed to it, and the next release hands over.
//!
//! Culled, and in solo mode (`plan.rs`), the candidate stands back only when the bound has passed.
//! Until then it sleeps with a timer: it *naps*, each time twice as long as before. So while it
//! naps all other waiters sleep, and releases wake nobody: the few *active* threads go round. As a
//! nap ends, it looks, and polls for a moment. In solo mode it takes the mutex only if that is
//! idle. A holder that departs to wait on a condition variable calls it out of its nap, since that
//! holder does not come back by itself: else two threads that notify each other took turns at the
//! pace of naps.
//!
//! If the active threads stop coming, the mutex is idle until the nap ends: for about as long as it
//! was busy before, and for the bound at most.
//!
//! # Invariants
//! Beside those of the queue (`mod.rs`):
//! 1. *At most one thread holds the mutex, or owns it for the oldest waiter.* `LOCKED` is set by a
//!    step that finds it clear, and that thread is the owner: (take), (give back), (take as
//!    candidate), (keep), or (unlock queue) of a free mutex in order, where no thread takes a mutex
//!    with waiters. The owner passes it on by (hand over one), (serve) and the answer, or clears
//!    it.
//! 2. *No waiter is forgotten.* While a waiter is queued, one of three holds. A thread holds or
//!    owns the mutex, so that a release comes. Or the queue is locked. Or a candidate is `AWAKE`:
//!    it looks at the word before it sleeps in the queue, and each nap ends by a timer. For (free)
//!    leaves a free mutex with waiters only with one of the other two. (unlock queue) leaves one
//!    only with a candidate: otherwise the table above has another line. The candidate leaves by
//!    (take as candidate), by (resign) while `LOCKED`, or by (stand back) while it holds the queue
//!    lock.
//! 3. *No release is overlooked.* (free) beside a locked queue changes the word, and (unlock queue)
//!    fails if the word has changed. In order no value comes back meanwhile. Barging, a thread may
//!    take the mutex again; then `NOTED` is there, and a candidate is chosen all the same.
//! 4. *The mutex lives while the queue is locked.* The queue-lock holder is a holder; or a waiter
//!    that leaves or stands back, whose own borrow lasts; or has waiters in the queue, or leavers
//!    that it has not answered. Each of them borrows the mutex until it is answered, and only the
//!    queue-lock holder answers a waiter of a locked queue. (A future that is forgotten does not:
//!    `TASKS.md`.)
//! 5. `DUE` implies a candidate or a waiter, while the queue is not locked. While it is set no
//!    candidate is chosen, and none comes forward: there are waiters, or there is a candidate. A
//!    thread that takes a mutex that is `DUE` sees that, and gives it back. If it looks too late to
//!    see it, the bit was cleared with a hand-over, which it excludes, or with the last waiter.
//! 6. `SINGLE` implies that no queue-lock holder has seen the queue since its only node came. So no
//!    link of it is in use, and [`Window`] names no node.
//! 7. A waiter that is detached, and whose answer waits for (unlock queue), stays so if that fails;
//!    but the only node is queued again.
//! 8. A waiter does not unwind from (enqueue) or (come forward) until it has the mutex or has left:
//!    a node or a bit would stay behind. If a panic comes, as of a wait that the kernel refuses,
//!    the process aborts.
//! 9. A guess (`QueueMutex::guess`) is open. Beside `FREE` it has a candidate, and is owed to
//!    nobody. So (take) leads from it, and (free) to it, whichever thread left that word.
//!
//! # Ordering
//! - (free), (serve), (serve free) release; (take), (take as candidate) acquire: the word hands
//!   over directly. (answer) and the look of a waiter at its status hand over else.
//! - (enqueue) releases the node. Each look of a queue-lock holder at the word acquires, also that
//!   of a compare-exchange that fails. Links pass on with the queue lock: (unlock queue) releases,
//!   and (serve), (serve free), (lock queue) acquire.
//! - (ask to leave) releases `Leaving`, (take leavers) acquires it.
//! - (hand over one) releases, since the holder's work passes on by the answer; it acquires the
//!   node.
//! - (come forward), (claim), (resign), (replace newest), (stand back) and (keep) order nothing.
//!   All transitions are read-modify-writes of one word, so each continues the releases before it.
//!   The look of the queue-lock holder before (keep) acquires, and finds the mutex free and owed:
//!   no thread has a section in it until (keep). A thread that gives back has nothing to pass on.
//!
//! # Sources
//! H. Franke, "Fast user-level locks" (2002): fair locks by hand-over, and what they cost. W. Long,
//! "futex: Throughput-optimized (TO) futexes" (LKML, 2016), and Linux `kernel/locking/mutex.c`: the
//! first waiter contends, and asks for the hand-off in time. D. Dice, "Malthusian Locks" (2017):
//! wake nobody while one spins; and the active set. R. Johnson et al., "Decoupling contention
//! management from scheduling" (2010): how many threads are active is apart from which one is next.
//! The queue of the Rust standard library's `sys::sync::rwlock::queue`. Here: one word for all
//! orders, the candidate outside of the queue, its naps, the bound, and leaving.

use super::rule::{Room, Rule};
use super::window::{self, Window};
use super::word::{DUE, LOCKED, State};
use super::{Kind, Newest, Node, Wake};
use crate::lock::meter::{Event, Meter};
use crate::lock::policy::InOneProcess;
use crate::lock::spin::{self, Look, Lost, Spin};
use crate::lock::traits as raw;
use crate::sys::futex::Local;
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
        self.change(self.word.with_newest(next), Relaxed) // (replace newest)
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

    /// Whether no arriving thread may take the mutex from now on until a waiter has had it. For
    /// tests.
    #[doc(hidden)]
    pub fn is_owed(&self) -> bool {
        let word = self.state();
        Self::owes(word) || word.is_due()
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
        !word.is_locked() && if R::IN_ORDER { !word.has_waiters() } else { !word.is_due() }
    }

    /// Whether the mutex is owed to the oldest waiter.
    pub(super) fn owes(word: State) -> bool {
        word.has_waiters() && (R::IN_ORDER || word.is_due() && !word.is_awake())
    }

    /// (take) at once; the word as it is if that failed.
    ///
    /// Of a mutex whose word is as expected it is a compare-exchange, which tells the word. If that
    /// is another, and not locked, it sets a bit and reads the word again. To read it first moves
    /// the line twice: 0.7 of the rate (EPYC, 20 to 100 ns inside and outside).
    #[inline(always)]
    pub(super) fn take(&self) -> Result<(), State> {
        let free = self.guess();
        match self.change(free, free.locked(), Acquire) {
            Err(word) if R::IN_ORDER || word.is_locked() => return Err(word),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
        if set_bit(&self.word, LOCKED, Acquire) {
            return Err(self.state());
        }
        let word = self.state();
        if word.is_due() { self.give_back(word) } else { Ok(()) }
    }

    /// (take) for as long as the mutex is open; the word as it is if that is not open. For arriving
    /// threads that may not wait.
    #[inline]
    fn take_open(&self) -> Result<(), State> {
        let mut taken = self.meter.arrive(|| self.take());
        // Another thread may have changed the word of an open mutex, or may hold its queue lock.
        while let Err(word) = taken
            && Self::is_open(word)
        {
            taken = self.meter.arrive(|| self.change(word, word.locked(), Acquire));
        }
        taken
    }

    /// An arriving thread has taken a mutex that is owed to a waiter, and releases it.
    #[cold]
    fn give_back(&self, word: State) -> Result<(), State> {
        self.unlock_contended(word, false);
        Err(self.state())
    }

    /// (claim).
    pub(super) fn set_due(&self) {
        set_bit(&self.word, DUE, Relaxed);
    }

    /// (take) by an arriving thread that polls.
    pub(super) fn look(&self) -> Look {
        let word = self.state();
        if !Self::is_open(word) {
            if self.is_solo() { Look::Hopeless } else { Look::Taken }
        } else if self.change(word, word.locked(), Acquire).is_ok() {
            self.count_passing(word);
            Look::Acquired
        } else {
            Look::Beaten
        }
    }

    /// An arriving thread has taken the mutex, whose word was `word`, after it had found it taken.
    pub(super) fn count_passing(&self, word: State) {
        let passes = word.has_waiters() || word.is_awake();
        self.meter.count(if passes { Event::Stolen } else { Event::Spun });
    }

    /// An arriving thread has found a mutex that was not open. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        let ns = if window::is_wide() { P::Spin::QUEUE_NS } else { P::Spin::ARRIVAL_NS };
        if !R::IN_ORDER && spin::backing_off_for::<P>(ns, P::Spin::SATURATED_NS, || self.look()) {
            return true;
        }
        if R::CULLED {
            self.meter.count(Event::Culled);
        }
        // Invariant 8.
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
        let mut lost = Lost::default();
        loop {
            if Self::is_open(word) {
                match self.meter.arrive(|| self.change(word, word.locked(), Acquire)) {
                    Ok(()) => {
                        self.count_passing(word);
                        return true;
                    }
                    Err(_) => word = lost.again(|| self.state()),
                }
            } else if !R::IN_ORDER && !word.has_waiters() && !word.is_awake() && !word.is_queue_locked() {
                match self.change(word, word.awake(), Relaxed) {
                    Ok(()) => return self.wait(node, true, false, deadline), // (come forward)
                    Err(_) => word = lost.again(|| self.state()),
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
                    Err(_) => word = lost.again(|| self.state()),
                }
            }
        }
    }

    /// The word after (enqueue) of `node`.
    pub(super) fn with_node(word: State, node: *const Node) -> State {
        let next = word.with_newest(node);
        if !R::IN_ORDER {
            next // the bit is `NOTED`
        } else if word.has_waiters() || word.is_queue_locked() {
            next.not_single()
        } else {
            next.single()
        }
    }

    /// Enqueues `node` for its thread, which was notified on a condition variable; barging. If the
    /// mutex is free and nobody is there, it answers `Chosen` instead. Returns by what to wake the
    /// thread.
    ///
    /// # Safety
    /// The caller has detached `node`, and leaves it alone from now on. Its thread borrows the
    /// mutex until it is answered, and waits by `wait_moved` once it is notified.
    pub(super) unsafe fn admit(mutex: *const Self, node: *const Node) -> Option<Wake> {
        // SAFETY: the thread of the node borrows the mutex. It is used no more after the change.
        let this = unsafe { &*mutex };
        let mut word = this.state();
        let mut is_new = false;
        loop {
            let comes_forward = word == State::FREE;
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
                // SAFETY: the caller has detached the node, and it has no answer yet.
                Ok(()) if comes_forward => return unsafe { Node::answer(node, Kind::Chosen) },
                Ok(()) => return None, // (enqueue)
                Err(now) => word = now,
            }
        }
    }

    /// Releases a mutex with waiters, a candidate, or a locked queue. `departs`: the holder goes to
    /// wait on a condition variable, so that it does not come back by itself.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut word: State, departs: bool) {
        let address = ptr::from_ref(self).addr();
        let left = loop {
            if !word.is_locked() {
                return; // misuse
            }
            let free = word.unlocked();
            let single = R::IN_ORDER && word.is_single();
            let (next, task) = if single {
                (State::HELD, Task::Nothing) // (hand over one)
            } else if word.is_queue_locked() && !R::IN_ORDER && !word.is_awake() {
                (free.noted(), Task::Nothing) // (free)
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
                Err(now) => word = now,
                Ok(()) => {
                    if task != Task::Nothing {
                        self.serve(Seen { mutex: self, word: next }, task);
                    } else if single {
                        // SAFETY: (hand over one) has detached the node, and this thread answers
                        // once.
                        Wake::wake_if(unsafe { Node::answer(word.newest(), Kind::Granted) });
                    }
                    break next;
                }
            }
        };
        Self::note_release(address, left, departs && word.is_awake());
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
//   These borrow the mutex, and do not unwind meanwhile (invariant 8).
unsafe impl<P: InOneProcess, R: Rule> raw::RawMutex for QueueMutex<P, R> {
    type Scope = Local;
    type Token = ();
    type Condvar = R::Condvar<P>;
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
        let taken = self.take_open();
        if taken.is_ok() {
            self.meter.count(Event::Acquired);
        }
        taken.ok()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken =
            self.take_open().is_ok() || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    /// More than the contract says: a release of a free mutex changes nothing, if no other thread
    /// acquires it meanwhile.
    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        let (free, address) = (self.guess(), ptr::from_ref(self).addr());
        // Without a look before, which would cost as much as in (take).
        // (free); from here on the mutex may be gone, if it succeeds.
        match self.change(free.locked(), free, Release) {
            Err(word) => self.unlock_contended(word, false),
            Ok(()) if free == State::FREE => {}
            Ok(()) => Self::note_release(address, free, false),
        }
    }

    #[inline]
    unsafe fn unlock_to_wait(&self, (): ()) {
        self.meter.released();
        if let Err(word) = self.change(State::HELD, State::FREE, Release) {
            self.unlock_contended(word, true);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = self.state();
        word.is_locked() || word.is_due() || Self::owes(word)
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
