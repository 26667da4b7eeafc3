//! The protocol of [`SemArray`](crate::SemArray): sets of semaphore operations, all or nothing, in
//! user space. `PROTOCOL.md` beside this folder tells it step by step.
//!
//! What a set means is System V's: its operations are evaluated in their order, each sees what
//! those before it did, the first that cannot proceed decides, and either all take effect at one
//! moment or none does. What Mason's patch of 2010 was after is how: locks for semaphores instead
//! of one for the array, sleepers queued at the semaphore where they stop, and wake-ups in bulk.
//! The kernel kept its one lock for sets; here it is done.
//!
//! # Properties
//! - A set takes effect at one moment between call and return, or not at all; the array is strictly
//!   serialisable.
//! - *No set sleeps that could proceed.* Whoever changes a value completes all who can proceed
//!   then, before it lets go of what it locked; so a value that is reached between two calls is
//!   seen by those who wait for it, however short it lasts.
//! - Newcomers are tried first. Of those that sleep, those that change nothing go first, then the
//!   oldest that can proceed. A sleeper keeps its age wherever it is moved. Elders: `cascade.rs`.
//! - One operation with nobody in the way is one compare-exchange, to wait for zero a load. A set
//!   with nobody in the way is one compare-exchange and one store a semaphore, and a fence. There
//!   is no system call in either.
//! - Operations on different semaphores do not meet, whatever sleeps elsewhere; sets of several
//!   operations that sleep slow down those on the semaphores that decide about them, and nobody
//!   else.
//! - A set is completed by others: what wakes up has nothing to do but return.
//! - Nothing is allocated after the array is made, but the watches of a set of more than eight
//!   operations that meets complex sleepers or becomes one.
//! - The stores that publish the words are the last touch (law 2). Who has seen all that an
//!   operation did may free the array; not so one with counters, which come after.
//!
//! # State
//! A cell a semaphore, and a few words for the whole:
//!
//! | what | where | guarded by |
//! |---|---|---|
//! | value, `LOCK`, `SUBTRACTIONS`, `ZERO`, `COMPLEX`, `CLOSED` | one word, [`State`] | itself; with `LOCK` it is the holder's |
//! | who stops here, who watches | the cell | `LOCK`; with `COMPLEX`, `LOCK` and `C` |
//! | the elders | the array | `C` |
//! | where threads wait for a cell | `gate.rs`, static | |
//! | where sets sleep | `groups.rs`, static | |
//!
//! A set that sleeps is a node on its thread's stack, in the queue of the semaphore of its first
//! operation that cannot proceed. With one operation it is *simple*. With several it is *complex*:
//! its fate depends on the operations before that one too, and so it watches their semaphores.
//! `COMPLEX` marks all of them.
//!
//! | flag | set by | cleared by | meaning |
//! |---|---|---|---|
//! | `LOCK` | a session (L1), a set of one pass (F2) | the same, (L2), (F3) | others wait |
//! | `SUBTRACTIONS` | (L2), if the queue of subtractions is not empty | (L2) | an addition must serve |
//! | `ZERO` | (L2), if the other queue is not empty | (L2) | who makes the value zero must serve |
//! | `COMPLEX` | (L2), if somebody here is complex, or watches | (L2) | it takes `C` |
//! | `CLOSED` | (L2) of `close` | never | |
//!
//! # Transitions
//! | what | if | label |
//! |---|---|---|
//! | one operation, at once | no flag that matters to it: [`State::alone`] | (F1) |
//! | each word of a set becomes its next value with `LOCK` | the same | (F2) |
//! | each of these words loses `LOCK`; if (F2) failed somewhere, also its change | | (F3) |
//! | a cell is locked | not `LOCK`; without `C` not `COMPLEX` | (L1) |
//! | a cell is published | its holder | (L2) |
//! | a value is read | not `LOCK` | (V) |
//! | a sleeper is told | its node is out of its queue, the words are published | (O1) |
//! | it gets up | (O2) shows that | (O2) |
//!
//! What (F1) and (F2) cannot do, a *session* does (`session.rs`): it locks the cells, evaluates on
//! the words, serves those who can proceed now, and publishes. One without `C` serves cells without
//! `COMPLEX`, where only simple sleepers are: a walk along one queue each. If the set must sleep
//! and is complex, or meets `COMPLEX`, it starts again with `C` (`cascade.rs`). Sets that need not
//! sleep, and meet no `COMPLEX`, do not take `C`, unless they find their cells locked again and
//! again: posters in bulk do not meet.
//!
//! # Invariants
//! 1. While nobody has `LOCK`, the evaluation of any sleeping set stops at the operation at whose
//!    semaphore it is queued, or it stops for the eldest there. It was put there by an evaluation
//!    under the `LOCK` of all cells up to that one, and whoever changes a value that matters to it
//!    finds a flag: `SUBTRACTIONS` if the value grows, `ZERO` if it becomes zero, and `COMPLEX` for
//!    any change where a complex one is queued or watches. Then it needs `LOCK`, and serves before
//!    it lets go.
//! 2. Operations after the one where a set stops do not matter to it: it cannot get further before
//!    that one can proceed.
//! 3. A word with `LOCK` is written by its holder only, and no value is learned from it. So what a
//!    session does is seen as one change, although its words are published one by one: whoever sees
//!    one published and comes to another waits.
//! 4. Who waits for a cell while it has others has `C` (`session.rs`): no deadlock, in whatever
//!    order sets name semaphores.
//! 5. A node leaves its queue once, by whoever serves it or by its owner; who takes it out tells
//!    it, or is its owner.
//! 6. In a queue tickets ascend. A new node draws its ticket with the cell locked; one that moves
//!    is put where its ticket belongs.
//!
//! # Ordering
//! | access | order | pairs with |
//! |---|---|---|
//! | (F1) compare-exchange, and the load that finds zero | Acquire, Release | (F1), (F3), (L2) |
//! | (F2), (L1) compare-exchange | Acquire | (F1), (F3), (L2) |
//! | (F3), (L2) store | Release | (F1), (F2), (L1), (V) |
//! | (V) load | Acquire | (F1), (F3), (L2) |
//! | (O1) store of what a sleeper is told | Release | (O2) |
//! | (O2) load | Acquire | (O1) |
//! | (A1) taking, (A2) releasing `C` | Acquire, Release | each other |
//!
//! Stores between (L1) and (L2) are relaxed: whoever reads one sees `LOCK` and learns nothing. What
//! a sleeper was handed comes to it by (O1): who serves has acquired each cell that is evaluated
//! for it. Nothing needs `SeqCst` but the gates.
//!
//! # Wrap-around
//! Tickets have 64 bits.
//!
//! # Sources
//! C. Mason, "ipc semaphores: reduce ipc_lock contention in semtimedop" (LKML, April 2010), with N.
//! Piggin's and M. Spraul's questions: order after a move (tickets), values waited for within a set
//! (evaluation in its own order, whatever the order of locking), starvation (elders). Linux's
//! `ipc/sem.c` for the semantics, and E. Schenk's note of 1995 there for why a zero must be served
//! by whoever makes it. Linux's `ntsync` and C++'s `std::lock` for locking without an order.

use crate::Error;
use crate::array::{Fairness, InOneProcess};
use crate::cell::Cell;
use crate::node::{Node, Watch};
use crate::op::Op;
use crate::session::ArrayLock;
use crate::session::{Obstacle, Session, Stopped};
use crate::sleep::Queued;
use crate::sleep::groups::Seat;
use crate::sleep::slots::Slot;
use crate::word::{State, Stop};
use core::time::Duration;
use smallvec::SmallVec;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, membarrier};

/// The greatest value that fits a word.
pub const GREATEST_LIMIT: u32 = State::GREATEST;

/// How long a set may wait.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until the deadline, if there is one.
    Until(Option<Deadline>),
    /// The same, and a signal handler ends it.
    Interruptible(Option<Deadline>),
}

impl Wait {
    pub(crate) fn deadline(self) -> Option<Deadline> {
        match self {
            Self::No => None,
            Self::Until(deadline) | Self::Interruptible(deadline) => deadline,
        }
    }

    pub(crate) fn is_interruptible(self) -> bool {
        matches!(self, Self::Interruptible(_))
    }
}

/// What came of an attempt without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The set was performed.
    Done,
    /// It stops at this operation: it cannot proceed now.
    Blocks(usize),
    /// It takes a session to say.
    Unclear,
}

/// How many sets sleep at a semaphore: each where its first operation is that cannot proceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiters {
    /// For it to grow (`GETNCNT`).
    pub increase: usize,
    /// For it to be zero (`GETZCNT`).
    pub zero: usize,
}

/// The array without permits.
#[repr(C)]
pub struct RawSemArray<P: InOneProcess = Private<NoSpin>> {
    pub(crate) cells: Box<[Cell]>,
    pub(crate) limit: u32,
    pub(crate) max_ops: usize,
    pub(crate) fairness: Fairness,
    pub(crate) meter: P::Meter,
    shared: OwnLine,
    pub(crate) tickets: AtomicU64,
    pub(crate) array_lock: ArrayLock,
    pub(crate) closed: AtomicU32,
}

/// Begins a cache line: what is above is read by every operation, and not written but for counters;
/// what is below is written.
#[repr(align(64))]
struct OwnLine;

// SAFETY: what is not atomic is guarded as the tables in `cell.rs` and `node.rs` say; nodes that it
// points to are used by the threads that have what guards them.
unsafe impl<P: InOneProcess> Send for RawSemArray<P> {}
// SAFETY: as above.
unsafe impl<P: InOneProcess> Sync for RawSemArray<P> {}

impl<P: InOneProcess> RawSemArray<P> {
    /// An array of semaphores with these values, none of which is greater than `limit`.
    #[must_use]
    pub fn new(values: &[u32], limit: u32, max_ops: usize, fairness: Fairness) -> Self {
        debug_assert!(limit <= State::GREATEST && values.iter().all(|&value| value <= limit));
        Self {
            cells: values.iter().map(|&value| Cell::new(value)).collect(),
            limit,
            max_ops,
            fairness,
            meter: P::Meter::INIT,
            shared: OwnLine,
            tickets: AtomicU64::new(0),
            array_lock: ArrayLock::new(),
            closed: AtomicU32::new(0),
        }
    }

    /// Performs the operations, all or none.
    #[inline]
    pub fn apply(&self, ops: &[Op], wait: Wait) -> Result<(), Error> {
        let attempt = match ops {
            [op] => self.perform_one(op),
            _ => self.perform_several(ops),
        };
        match attempt {
            Attempt::Done => {}
            Attempt::Blocks(at) if ops[at].no_wait || matches!(wait, Wait::No) => {
                return Err(self.check(ops).err().unwrap_or(Error::WouldBlock));
            }
            _ => self.perform_slowly(ops, wait)?,
        }
        self.meter.count(Event::Acquired);
        Ok(())
    }

    /// (F1): one operation with nobody in the way.
    ///
    /// The compare-exchange is Relaxed if it fails: an operation that comes to it changes the word,
    /// so it is never done by what it finds then, and the attempt that succeeds acquires.
    #[inline]
    pub(crate) fn perform_one(&self, op: &Op) -> Attempt {
        let Some(cell) = self.cells.get(op.index()) else { return Attempt::Unclear };
        let mut word = cell.word.load(Acquire);
        while let Some(next) = self.alone(word, op) {
            if next == word {
                return Attempt::Done;
            }
            match cell.word.compare_exchange_weak(word, next, AcqRel, Relaxed) {
                Ok(_) => return Attempt::Done,
                Err(now) => word = now,
            }
        }
        self.stopped(word, op, 0)
    }

    /// (F2), (F3): a set with nobody in the way: locks each word with the value it is to have, and
    /// then lets all go. If it is not done, nothing has changed. Operations on one semaphore follow
    /// each other here; one that comes back to a semaphore later finds it locked.
    pub(crate) fn perform_several(&self, ops: &[Op]) -> Attempt {
        if ops.is_empty() || ops.len() > self.max_ops {
            return Attempt::Unclear;
        }
        let mut repeats = false;
        for (at, op) in ops.iter().enumerate() {
            let Some(cell) = self.cells.get(op.index()) else {
                self.let_go(&ops[..at], repeats, State::before);
                return Attempt::Unclear;
            };
            let mut word = cell.word.load(Relaxed);
            let locked = self.alone(word, op).is_some_and(|next| {
                cell.word.compare_exchange(word, next | State::LOCK, Acquire, Relaxed).is_ok()
            });
            if locked {
                continue;
            }
            let ours = at > 0 && ops[at - 1].index == op.index;
            if ours {
                repeats = true;
                word = cell.word.load(Relaxed) & !State::LOCK;
                if let Some(next) = self.alone(word, op) {
                    cell.word.store(next | State::LOCK, Relaxed);
                    continue;
                }
            }
            self.let_go(&ops[..at], repeats, State::before);
            return self.stopped(word, op, at);
        }
        self.let_go(ops, repeats, |word, _| word);
        Attempt::Done
    }

    /// (F3): publishes the words of `ops` from the last one back, as `last` makes them: where a
    /// semaphore `repeats`, with the first of its operations.
    fn let_go(&self, ops: &[Op], repeats: bool, last: impl Fn(State, &Op) -> State) {
        if ops.is_empty() {
            return;
        }
        let slot = self.slot();
        let mut bits = 0;
        for (at, op) in ops.iter().enumerate().rev() {
            let word = &self.cells[op.index()].word;
            let last = last(State(word.load(Relaxed)), op);
            if repeats && at > 0 && ops[at - 1].index == op.index {
                word.store(last.0, Relaxed);
                continue;
            }
            membarrier::store(word, last.0 & !State::LOCK, Release);
            bits |= 1 << (op.index % 32);
        }
        slot.released(bits);
    }

    /// What an operation makes of a word where nobody is to be asked or told.
    #[inline]
    fn alone(&self, word: u32, op: &Op) -> Option<u32> {
        State(word).alone(op, self.limit).map(|next| next.0)
    }

    /// What is known of a set that did not get beyond `op`.
    #[cold]
    fn stopped(&self, word: u32, op: &Op, at: usize) -> Attempt {
        if State(word).blocks(op, self.limit) { Attempt::Blocks(at) } else { Attempt::Unclear }
    }

    pub(crate) fn out_of_range(&self, op: &Op) -> Error {
        Error::ValueOutOfRange { index: op.index(), limit: self.limit }
    }

    pub(crate) fn slot(&self) -> &'static Slot {
        Slot::of(self.cells.as_ptr().addr())
    }

    /// Whether `ops` are operations of this array.
    pub(crate) fn check(&self, ops: &[Op]) -> Result<(), Error> {
        if ops.len() > self.max_ops {
            return Err(Error::SetTooLong { len: ops.len(), most: self.max_ops });
        }
        ops.iter().try_for_each(|op| self.check_index(op.index()))?;
        match ops.iter().find(|op| op.amount > self.limit) {
            Some(op) => Err(self.out_of_range(op)),
            None if ops.is_empty() && self.is_closed() => Err(Error::Closed),
            None => Ok(()),
        }
    }

    #[cold]
    fn perform_slowly(&self, ops: &[Op], wait: Wait) -> Result<(), Error> {
        self.check(ops)?;
        // Once other threads know the node and its watches, a panic must not free them.
        without_unwinding(|| {
            let node = Node::new(ops);
            self.perform_without_array_lock(&node, wait).unwrap_or_else(|| {
                // Before anything is locked: a long set's watches lie on the heap.
                let watches: SmallVec<[Watch; 8]> = match wait {
                    Wait::No => SmallVec::new(),
                    _ => ops.iter().map(|_| Watch::new(&node)).collect(),
                };
                self.perform_with_array_lock(&node, &watches, wait)
            })
        })
    }

    /// Performs a set in a session without `C`, and if it is one operation, sleeps for it; none if
    /// it takes `C`. The node is in no queue then.
    fn perform_without_array_lock(&self, node: &Node, wait: Wait) -> Option<Result<(), Error>> {
        let ops = node.ops();
        let here = 0;
        let mut session = Session::new(self, &here);
        match session.lock_all(ops) {
            Ok(()) => {}
            Err(Obstacle::Closed) => return Some(Err(Error::Closed)),
            Err(_) => return None,
        }
        let Err(stopped) = session.evaluate(ops, u64::MAX) else {
            for op in ops.iter().filter(|op| op.alters()) {
                session.drain(op.index);
            }
            session.publish();
            return Some(Ok(()));
        };
        if let Some(error) = self.error(ops, stopped, wait) {
            session.publish();
            return Some(Err(error));
        }
        if ops.len() > 1 || matches!(self.fairness, Fairness::Strict { .. }) {
            session.publish();
            return None;
        }
        let queued = self.enqueue(&mut session, node, stopped.at);
        session.publish();
        Some(self.sleep(node, queued, wait))
    }

    /// Performs a set in a session with `C`, and sleeps for it if it must.
    fn perform_with_array_lock(&self, node: &Node, watches: &[Watch], wait: Wait) -> Result<(), Error> {
        let ops = node.ops();
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        let Err(stopped) = session.evaluate(ops, u64::MAX) else {
            session.cascade(ops);
            session.publish();
            return Ok(());
        };
        if let Some(error) = self.error(ops, stopped, wait) {
            session.publish();
            return Err(error);
        }
        // SAFETY: nobody knows the node yet.
        unsafe { node.links(|links| links.watches = watches.as_ptr()) };
        let queued = self.enqueue(&mut session, node, stopped.at);
        session.publish();
        self.sleep(node, queued, wait)
    }

    /// Why a set that stopped does not wait; none if it does.
    fn error(&self, ops: &[Op], stopped: Stopped, wait: Wait) -> Option<Error> {
        match stopped.why {
            Stop::OutOfRange => Some(self.out_of_range(&ops[stopped.at])),
            Stop::Closed => Some(Error::Closed),
            Stop::Blocks if ops[stopped.at].no_wait || matches!(wait, Wait::No) => Some(Error::WouldBlock),
            Stop::Blocks => None,
        }
    }

    /// Puts the node of a set that stopped in its queue.
    fn enqueue(&self, session: &mut Session<'_, P>, node: &Node, at: usize) -> Queued {
        let seat = Seat::claim_near((&raw const self.cells[node.ops()[at].index()]).addr());
        let after = match self.fairness {
            Fairness::Strict { after } => Some(after),
            Fairness::Barging => None,
        };
        let complex = node.ops().len() > 1 || after.is_some();
        // SAFETY: the node is new; the session has its cells up to where it stopped, and C if it is
        // complex. It lives on the stack of a thread that stays there until it is told or has taken
        // it out. The ticket is drawn with the cell locked, so those in its queue have smaller
        // ones.
        unsafe {
            node.links(|links| {
                links.ticket = self.tickets.fetch_add(1, Relaxed);
                links.seat = Some(seat);
            });
            session.enqueue(node, at, complex);
            if after == Some(Duration::ZERO) {
                session.make_aged(node);
            }
        }
        Queued { seat, complex, ages_after: after }
    }
}
