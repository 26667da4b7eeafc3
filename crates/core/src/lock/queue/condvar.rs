//! The condition variable of the barging [`QueueMutex`], whose waiters stand in a queue of their
//! own.
//!
//! A waiter's node is the one with which it queues for the mutex afterwards. So a notification does
//! not wake a waiter of a held mutex: it moves the node from this queue to the mutex's.
//!
//! # Properties
//! - A notification that comes after a waiter has released the mutex is not missed.
//! - It goes to a waiter that spins, if one of the newest does; else to the oldest. One that is
//!   owed or passed on goes to the oldest, since a waiter that spins may have come after it.
//! - Of a waiter's time-out and its notification exactly one wins. A notification that meets a
//!   waiter whose time is up is received by it.
//! - A wait does not end without a notification, unless notifications come while another thread
//!   works on the queue ((owe) below).
//! - Waiters that are notified while the mutex is held stand in its queue in the order of their
//!   notifications.
//! - A notification never waits, also in a signal handler. It makes one load if no thread waits,
//!   and one read-modify-write of the word if one does. It wakes a sleeper only if the mutex is
//!   free.
//! - (take one) or (unlock queue) is the last access of a notification to the condition variable,
//!   and the answer or the move its last to the mutex. So a notified waiter may free both when it
//!   returns.
//! - Sixteen bytes, all-zero without waiters. Nothing is allocated.
//!
//! # State
//! The word is the address of the newest node, and [`Word`]'s bits. `spins` says which waiters spin
//! ([`Spins`]), and is a hint. Each transition of the word is one compare-exchange:
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | any | the same with its node as the newest; `SINGLE` if it was zero, else not | a waiter that still holds the mutex | (enqueue) |
//! | one waiter, `SINGLE` | zero | a notification, for that waiter | (take one) |
//! | waiters, not `QUEUE_LOCKED`, not `SINGLE` | `QUEUE_LOCKED`, `NOTIFYING` | a notification | (lock queue) |
//! | not `QUEUE_LOCKED` | `QUEUE_LOCKED`, `LEAVERS`, not `SINGLE` | a thread whose time is up | (lock queue) |
//! | not `QUEUE_LOCKED` | `QUEUE_LOCKED`, not `SINGLE` | a task that leaves, and removes its node then | (lock queue) |
//! | waiters, `QUEUE_LOCKED` | the same that owes more notifications | a notification | (owe) |
//! | `QUEUE_LOCKED`, owes some | owes none, `NOTIFYING` | the queue-lock holder, which notifies so many then | (take owed) |
//! | `QUEUE_LOCKED` | `LEAVERS` | a waiter whose time is up | (ask to leave) |
//! | `QUEUE_LOCKED`, `LEAVERS` | not `LEAVERS` | the queue-lock holder, which removes the leavers then | (take leavers) |
//! | `QUEUE_LOCKED`, waiters | another newest node, or none | the queue-lock holder | (replace newest) |
//! | `QUEUE_LOCKED`, not `LEAVERS`, owes none | not `QUEUE_LOCKED`, not `NOTIFYING` | the queue-lock holder | (unlock queue) |
//!
//! The status of a node, beside what `mod.rs` says:
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | `Waiting` | `Parked` | its thread | (park) |
//! | `Waiting`, `Parked` | `Leaving` | its thread, whose time is up | (give up) |
//! | `Waiting`; `Parked` or `Leaving` | the same; `Parked`. Both with `MOVED` | the thread that has detached the node, before (move) | (notify) |
//! | each of the three | `Notified`, `Chosen` | the thread that has detached the node | (answer) |
//! | `MOVED` | as the mutex's queue does | the mutex's queue-lock holder | |
//! | `Leaving` | `Removed` | the queue-lock holder, after (unlock queue) | (answer) |
//!
//! # Protocol
//! A wait queues, releases the mutex, spins if `spins` lets it, and sleeps. A waiter that finds
//! `MOVED` or an answer was notified. From then on it waits as a waiter of the mutex, and has no
//! deadline.
//!
//! A notification detaches its waiters: the only one by (take one), and others under the queue
//! lock. Only after that, and after (unlock queue), does it hand them over to the mutex, in the
//! order of their detaching:
//! - to a waiter that spins it answers `Notified`: the waiter acquires as an arriving thread;
//! - if the mutex is free, and has neither waiters nor a candidate, it answers `Chosen`;
//! - else it does (notify) and (move): the node is queued on the mutex.
//!
//! A notification that finds the queue locked leaves its work to the queue-lock holder: (owe). The
//! word counts up to 2 notifications. More of them are a notification of all. If no waiter is
//! queued any more when its turn comes, a leaver that was not answered yet receives it. So the
//! first one that is owed while `NOTIFYING` is not set is sure to be received. Waiters may have
//! come since then, as its own notifier. All that it may be for are older, so it goes to the
//! oldest.
//!
//! To a task it answers `Notified`, too: it acquires as an arriving task. A future that is dropped
//! when it was notified notifies the oldest waiter in its place. One that leaves an unlocked queue
//! looks at no node but its own, however many wait: no notification moves it, so it is queued here,
//! or detached and not made anew. A thread's node may be between the two queues, so it is found by
//! (take leavers).
//!
//! # Invariants
//! Beside those of the queue (`mod.rs`):
//! 1. *A waiter is queued before the mutex is released.* So whoever acquires the mutex after it,
//!    and notifies, finds it.
//! 2. *The thread that detaches a node decides how its wait ends.* A waiter that is `Leaving` sets
//!    `LEAVERS`, and waits. If it is queued, the queue-lock holder finds it. If it was detached by
//!    a notification, that one answers it or moves it, as if it was not `Leaving`.
//! 3. *A notified waiter returns only after (take one) or (unlock queue).* It is answered after
//!    that, or moved, which comes before its answer. So the condition variable lives until (unlock
//!    queue). It lives for a waiter that leaves too, since that waiter's own borrow lasts.
//! 4. *The mutex of a node lives until (move) or (answer).* Its waiter borrows it, and returns only
//!    after an answer. A node that is not in the mutex's queue is answered by its notification
//!    alone.
//! 5. *No notification is owed while the queue is unlocked.* (owe) needs `QUEUE_LOCKED`, and
//!    (unlock queue) fails if it came before.
//! 6. `SINGLE` implies one node, and that the queue is unlocked: (enqueue) on another word, and
//!    (lock queue), clear it. So (take one) needs no link.
//! 7. A waiter does not unwind from (enqueue) until it has left or has the mutex: its node would
//!    stay behind.
//!
//! # Ordering
//! - (enqueue) releases the node, (take one) acquires it. So do (lock queue) of a notification or
//!   of a task, (take leavers), which comes first after that of a thread that leaves, and each look
//!   at the word that fails to change it. (unlock queue) releases the links to the next queue-lock
//!   holder.
//! - (lock queue) of a thread that leaves and (ask to leave) release `Leaving`, (take leavers)
//!   acquires it. The second leaver of two writes the word as it was.
//! - (replace newest) and (unlock queue) acquire nothing: the queue-lock holder has acquired the
//!   value that they find. While the queue is locked no value comes back, but a second leaver and
//!   (owe) may write the word as it was. (take leavers), which follows, acquires what counts.
//! - (answer) releases what the notification did to the node, also that of the mutex's queue-lock
//!   holder: (move) releases to that one. The look of a waiter at its status acquires.
//! - (owe), (replace newest), (notify), (park) and (give up) order nothing. What a notifier did is
//!   passed on by the mutex.
//!
//! # Sources
//! The requeue of Linux `FUTEX_CMP_REQUEUE`, and of T. Anderson and M. Dahlin's wait queues ("wait
//! morphing"). Here: one node for both queues, and notifications that do not wait.

use super::mutex::QueueMutex;
use super::rule::Rule;
use super::window;
use super::{Departures, Kind, Newest, Node, Status, Wake, Wakers, Window};
use crate::lock::condvar::spins::Spins;
use crate::lock::condvar::{Waits, Wakeup};
use crate::lock::policy::InOneProcess;
use crate::lock::spin;
use crate::lock::traits::RawMutex;
use crate::sys::futex::{Local, Waited};
use crate::sys::sync::Ordering::{self, Acquire, Relaxed, Release};
use crate::sys::sync::{AtomicPtr, AtomicU32, without_unwinding};
use crate::sys::time::Deadline;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

/// The condition variable of [`QueueMutex`]: the word, and which waiters spin.
#[repr(C)]
pub struct QueueCondvar<P: InOneProcess, R: Rule> {
    word: AtomicPtr<Node>,
    spins: AtomicU32,
    mutex: PhantomData<fn(&QueueMutex<P, R>)>,
}

#[cfg(world = "machine")]
const _: () = assert!(size_of::<QueueCondvar<crate::Private, super::HandOff>>() <= 16);

// SAFETY: the pointer is an atomic, and what it points to is accessed by the rules of the queue.
unsafe impl<P: InOneProcess, R: Rule> Send for QueueCondvar<P, R> {}
// SAFETY: as above.
unsafe impl<P: InOneProcess, R: Rule> Sync for QueueCondvar<P, R> {}

/// A waiter, on its stack. A pointer to its node is one to it.
#[repr(C)]
struct Waiter<P: InOneProcess, R: Rule> {
    node: Node,
    /// The mutex that it borrows.
    mutex: *const QueueMutex<P, R>,
}

/// A value of the word.
///
/// | part | meaning | set by | cleared by |
/// |---|---|---|---|
/// | `QUEUE_LOCKED` | a thread works on the queue: the *queue-lock holder* | a notification, or a waiter whose time is up | the queue-lock holder |
/// | `LEAVERS` | a waiter whose time is up asks to be detached | that waiter, while `QUEUE_LOCKED` is set | the queue-lock holder |
/// | `NOTIFYING` | the queue-lock holder takes waiters for notifications | a notification that locks the queue; the queue-lock holder, for notifications that are owed | the queue-lock holder |
/// | `SINGLE` | the newest node is the only one, and no queue-lock holder has seen it | a waiter that finds the word zero | the next waiter; the thread that locks the queue |
/// | `owed`, two bits | notifications left to the queue-lock holder; `ALL` stands for one of all | a notification, while `QUEUE_LOCKED` is set | the queue-lock holder |
/// | the rest | the newest node, null if the queue is empty | a waiter | the queue-lock holder |
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(*mut Node);

const QUEUE_LOCKED: usize = 1;
const LEAVERS: usize = 2;
const NOTIFYING: usize = 4;
const SINGLE: usize = 8;
const OWED_SHIFT: u32 = 4;
const OWED: usize = 3 << OWED_SHIFT;
const BITS: usize = QUEUE_LOCKED | LEAVERS | NOTIFYING | SINGLE | OWED;
const _: () = assert!(align_of::<Node>() > BITS, "the bits are those that the address of a node leaves free");

/// How many of the newest waiters are looked at for one that spins. Others were not measured.
const NEAR: usize = 8;

impl Word {
    /// A notification of all waiters, or of more than the word can count.
    const ALL: usize = OWED >> OWED_SHIFT;
    /// Without waiters.
    const EMPTY: Self = Self(ptr::null_mut());

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn newest(self) -> *const Node {
        self.0.map_addr(|address| address & !BITS)
    }

    fn with_newest(self, node: *const Node) -> Self {
        Self(node.cast_mut().map_addr(|address| address | (self.0.addr() & BITS)))
    }

    /// After (enqueue) of `node`.
    fn with_node(self, node: *const Node) -> Self {
        let next = self.with_newest(node);
        if self.0.is_null() { next.with(SINGLE) } else { next.without(SINGLE) }
    }

    /// After (lock queue), with `bits`.
    fn queue_locked(self, bits: usize) -> Self {
        self.without(SINGLE).with(QUEUE_LOCKED | bits)
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn without(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address & !bits))
    }

    fn owed(self) -> usize {
        (self.0.addr() & OWED) >> OWED_SHIFT
    }

    fn owing(self, more: usize) -> Self {
        self.without(OWED).with((self.owed() + more).min(Self::ALL) << OWED_SHIFT)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiters = if self.newest().is_null() { "no waiters" } else { "WAITERS" };
        f.write_str(waiters)?;
        for (bit, name) in [
            (QUEUE_LOCKED, "QUEUE_LOCKED"),
            (LEAVERS, "LEAVERS"),
            (NOTIFYING, "NOTIFYING"),
            (SINGLE, "SINGLE"),
        ] {
            if self.has(bit) {
                write!(f, "|{name}")?;
            }
        }
        match self.owed() {
            0 => Ok(()),
            owed => write!(f, " owed={owed}"),
        }
    }
}

/// The word as the queue-lock holder has seen it last, acquiring. A thread that has just locked the
/// queue to leave has not acquired: it has set `LEAVERS`, and looks at no node before (take
/// leavers).
struct Seen<'a, P: InOneProcess, R: Rule> {
    condvar: &'a QueueCondvar<P, R>,
    word: Word,
}

impl<P: InOneProcess, R: Rule> Seen<'_, P, R> {
    /// Changes the word to `next`; if it is another one by now, sees that.
    fn change(&mut self, next: Word, order: Ordering) -> bool {
        let changed = self.condvar.change(self.word, next, order);
        self.word = changed.err().unwrap_or(next);
        changed.is_ok()
    }
}

impl<P: InOneProcess, R: Rule> Newest for Seen<'_, P, R> {
    fn newest(&mut self) -> *const Node {
        self.word.newest()
    }

    fn replace(&mut self, newest: *const Node, next: *const Node) -> bool {
        while self.word.newest() == newest {
            if self.change(self.word.with_newest(next), Relaxed) {
                return true; // (replace newest)
            }
        }
        false
    }

    fn window(&self) -> Option<&Window> {
        None
    }
}

/// Whether the waiter was notified, by its status.
fn is_notified(status: Status) -> bool {
    status.is_moved() || status.is_answer() && !status.is(Kind::Removed)
}

impl<P: InOneProcess, R: Rule> QueueCondvar<P, R> {
    crate::const_fn! {
        /// Without waiters; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { word: AtomicPtr::new(ptr::null_mut()), spins: AtomicU32::new(0), mutex: PhantomData }
        }
    }

    fn state(&self) -> Word {
        Word(self.word.load(Relaxed))
    }

    /// Changes the word from `now` to `next`; the word as it is if that is not `now`.
    fn change(&self, now: Word, next: Word, order: Ordering) -> Result<(), Word> {
        self.word.compare_exchange(now.0, next.0, order, Acquire).map(drop).map_err(Word)
    }

    /// (enqueue)
    ///
    /// # Safety
    /// The node is the caller's, and in no queue. It lives, where it is, until it is answered.
    pub(super) unsafe fn enqueue(&self, node: *const Node) {
        let mut word = self.state();
        loop {
            // SAFETY: the node is the caller's, and not in the word yet.
            unsafe { Node::follow(node, word.newest()) };
            match self.change(word, word.with_node(node), Release) {
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Waits in the queue, without the mutex. Whether it was notified.
    fn await_notification(&self, node: &Node, budget: u32, deadline: Option<Deadline>) -> bool {
        if budget > 0 {
            let mut notified = false;
            spin::until(budget, || {
                notified = is_notified(node.look());
                notified
            });
            self.end_spin(notified);
        }
        loop {
            let seen = node.look();
            if is_notified(seen) {
                return true;
            }
            let parked = Status::parked(window::here());
            if node.status.compare_exchange(seen.0, parked.0, Relaxed, Relaxed).is_ok() // (park)
                && node.status.wait(parked.0, deadline) == Waited::TimedOut
            {
                let leave = |leaving| self.leave(node, leaving).is(Kind::Removed);
                return !node.ask_to_leave().is_some_and(leave); // (give up)
            }
        }
    }

    /// For how many pauses the caller spins, zero if it does not.
    fn begin_spin(&self) -> u32 {
        let budget = spin::budget::<Local>(QueueMutex::<P, R>::CONDVAR_NS);
        let process = if budget > 0 { spin::process() } else { None };
        let Some(process) = process else { return 0 };
        let mut seen = self.spins.load(Relaxed);
        loop {
            let (next, spins) = Spins(seen).with_spinner(process);
            match self.spins.compare_exchange(seen, next.0, Relaxed, Relaxed) {
                Ok(_) => return if spins { budget } else { 0 },
                Err(now) => seen = now,
            }
        }
    }

    fn end_spin(&self, notified: bool) {
        let mut seen = self.spins.load(Relaxed);
        while let Err(now) =
            self.spins.compare_exchange(seen, Spins(seen).without_spinner(notified).0, Relaxed, Relaxed)
        {
            seen = now;
        }
    }

    /// A waiter whose time is up, and whose status is `leaving`, leaves, which is the answer
    /// `Removed`, unless it is notified first.
    #[cold]
    pub(super) fn leave(&self, node: &Node, leaving: Status) -> Status {
        let mut word = self.state();
        while node.look() == leaving {
            let removes = leaving.is_task() && !word.has(QUEUE_LOCKED);
            let next = word.queue_locked(if removes { 0 } else { LEAVERS });
            match self.change(word, next, if removes { Acquire } else { Release }) {
                Ok(()) if word.has(QUEUE_LOCKED) => break, // (ask to leave)
                // (lock queue)
                Ok(()) => {
                    let (mut seen, mut gone) = (Seen { condvar: self, word: next }, Departures::new());
                    // SAFETY: this thread holds the queue lock, acquiring. The node is its own, was
                    // pushed, and is alive. Once it is removed, this thread answers it by `serve`.
                    unsafe {
                        if removes && super::remove(&mut seen, node) {
                            gone.push(node);
                        }
                    }
                    self.serve(seen, 0, false, gone);
                    break;
                }
                Err(now) => word = now,
            }
        }
        node.await_answer(leaving)
    }

    /// Notifies `most` waiters, at most; one that `spins` first, or the oldest. Returns how many;
    /// if that is left to the queue-lock holder, how many are certain: 1 if no other notification
    /// is on its way, or else 0.
    pub(super) fn notify(&self, most: usize, spins: bool) -> usize {
        let mut word = self.state();
        loop {
            if word.newest().is_null() {
                return 0;
            }
            let (single, locked) = (word.has(SINGLE), word.has(QUEUE_LOCKED));
            let next = match (single, locked) {
                (true, _) => Word::EMPTY,
                (_, true) => word.owing(most),
                (_, false) => word.queue_locked(NOTIFYING),
            };
            match self.change(word, next, Acquire) {
                // (take one); from here on, the condition variable may be gone.
                Ok(()) if single => {
                    // SAFETY: (take one) has detached the node, which is handed over once.
                    Wake::wake_if(unsafe { Self::hand_over(word.newest()) });
                    return 1;
                }
                // (owe)
                Ok(()) if locked => return usize::from(word.owed() == 0 && !word.has(NOTIFYING)),
                // (lock queue)
                Ok(()) => {
                    let seen = Seen { condvar: self, word: next };
                    return self.serve(seen, most, spins, Departures::new());
                }
                Err(now) => word = now,
            }
        }
    }

    /// Notifies `most` waiters, works off what is left to it, unlocks the queue, and answers those
    /// that are `gone`, which were removed. Returns how many of the `most` there were. The caller
    /// has set `QUEUE_LOCKED`, acquiring, or with `LEAVERS` and no `most`.
    fn serve(&self, mut seen: Seen<'_, P, R>, most: usize, spins: bool, mut gone: Departures) -> usize {
        let mut notified = Departures::new();
        let count = Self::take(&mut seen, most, spins, &mut gone, &mut notified);
        loop {
            let word = seen.word;
            let taken = word.without(LEAVERS | OWED);
            if taken != word {
                let next = if word.owed() > 0 { taken.with(NOTIFYING) } else { taken };
                // (take leavers), (take owed)
                if seen.change(next, Acquire) {
                    Self::take(&mut seen, word.owed(), false, &mut gone, &mut notified);
                    if word.has(LEAVERS) {
                        // SAFETY: this thread holds the queue lock, and answers below.
                        unsafe { super::remove_leavers(&mut seen, &mut gone) };
                    }
                }
                continue;
            }
            // (unlock queue); from here on, the condition variable may be gone.
            if seen.change(word.without(QUEUE_LOCKED | NOTIFYING), Release) {
                break;
            }
        }
        let mut tasks = Wakers::new();
        while let Some(node) = notified.pop() {
            // SAFETY: this thread has detached the node, and hands it over once.
            tasks.add(unsafe { Self::hand_over(node) });
        }
        gone.answer_each(Kind::Removed, &mut tasks);
        tasks.wake();
        count
    }

    /// Detaches up to `most` waiters, for `hand_over`. Of all, those that are queued now. If there
    /// are too few, it takes of those that are `gone` and not answered yet: a notification that was
    /// left to this thread has met one of them.
    fn take(
        seen: &mut Seen<'_, P, R>,
        most: usize,
        spins: bool,
        gone: &mut Departures,
        notified: &mut Departures,
    ) -> usize {
        let (last, mut count) = (seen.newest(), 0);
        let wants = |count| most == Word::ALL || count < most;
        while wants(count) && !seen.newest().is_null() {
            let newest = seen.newest();
            // SAFETY: this thread holds the queue lock and has read the word acquiring. The node is
            // queued, is detached once, and is handed over by `serve`.
            let node = unsafe {
                let oldest = super::complete(seen, newest);
                let node = if spins { Self::first(seen.condvar, oldest, newest) } else { oldest };
                Node::claim(node);
                super::detach_from(seen, node);
                notified.push(node);
                node
            };
            count += 1;
            if node == last && most == Word::ALL {
                break;
            }
        }
        while wants(count)
            && let Some(node) = gone.pop()
        {
            // SAFETY: this thread has detached the node, has not answered it, and hands it over.
            unsafe { notified.push(node) };
            count += 1;
        }
        count
    }

    /// Which waiter is notified first: one of the newest that spins, which needs no wake-up, or the
    /// oldest.
    ///
    /// # Safety
    /// The caller is the queue-lock holder, and both nodes are queued. The links are complete.
    unsafe fn first(condvar: &Self, oldest: *const Node, newest: *const Node) -> *const Node {
        if Spins(condvar.spins.load(Relaxed)).spinning() == 0 {
            return oldest;
        }
        let mut node = newest;
        for _ in 0..NEAR {
            // SAFETY: queued nodes are alive.
            let seen = unsafe { (*node).look() };
            if seen.is(Kind::Waiting) && !seen.is_task() {
                return node;
            }
            if node == oldest {
                break;
            }
            // SAFETY: the contract; the node is queued, and is not the oldest.
            node = unsafe { Node::older(node) };
        }
        oldest
    }

    /// Hands a notified waiter over to its mutex. Returns by what to wake it.
    ///
    /// # Safety
    /// The caller has detached the node, and hands it over once.
    unsafe fn hand_over(node: *const Node) -> Option<Wake> {
        // SAFETY: the node lives until it is answered. If it is not a task's, it is the first field
        // of a `Waiter`, and the pointer was made from one to that. The mutex lives as long
        // (invariant 4).
        unsafe {
            let seen = (*node).look();
            if seen.is_task() || seen.is(Kind::Waiting) {
                return Node::answer(node, Kind::Notified);
            }
            QueueMutex::admit((*node.cast::<Waiter<P, R>>()).mutex, node)
        }
    }
}

// SAFETY: `wait` returns holding the mutex, by `wait_moved` or by `lock`. The token is nothing.
unsafe impl<P: InOneProcess, R: Rule> Waits<QueueMutex<P, R>> for QueueCondvar<P, R> {
    unsafe fn wait(&self, mutex: &QueueMutex<P, R>, (): (), deadline: Option<Deadline>) -> ((), Wakeup) {
        // Invariant 7.
        let (notified, holds) = without_unwinding(|| {
            let waiter = Waiter { node: Node::new(window::here(), 1), mutex };
            let node = (&raw const waiter).cast::<Node>();
            let budget = self.begin_spin();
            // SAFETY: the node is this thread's, and stays where it is until the wait is over.
            unsafe { self.enqueue(node) };
            // SAFETY: this thread holds the mutex, by the contract; the token is nothing.
            unsafe { mutex.unlock_to_wait(()) };
            let notified = self.await_notification(&waiter.node, budget, deadline);
            let holds = notified && mutex.wait_moved(&waiter.node);
            waiter.node.take_back();
            (notified, holds)
        });
        if !holds {
            mutex.lock();
        }
        ((), if notified { Wakeup::Notified } else { Wakeup::TimedOut })
    }

    #[inline]
    fn notify_one(&self) -> bool {
        !self.state().newest().is_null() && self.notify(1, true) > 0
    }

    #[inline]
    fn notify_all(&self) -> usize {
        if self.state().newest().is_null() { 0 } else { self.notify(Word::ALL, false) }
    }
}

impl<P: InOneProcess, R: Rule> fmt::Debug for QueueCondvar<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}

crate::initial!([P: InOneProcess, R: Rule] QueueCondvar<P, R> = Self::new());

#[cfg(all(test, world = "machine"))]
mod tests;
