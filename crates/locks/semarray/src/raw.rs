//! The protocol of [`SemArray`](crate::SemArray): sets of semaphore operations, all or nothing, in
//! user space. `PROTOCOL.md` beside this folder has a picture, traces, and what was weighed.
//!
//! A set means what it means in System V. Its operations are evaluated in their order, and each
//! sees what the earlier ones did. The first operation that cannot proceed *stops* the set. Either
//! all operations take effect at one moment, or none does. The means are those of Mason's patch of
//! 2010: a lock for each semaphore instead of one for the array, waiters queued at the semaphore
//! where their sets stop, and wake-ups in bulk. Linux has locks of semaphores for single operations
//! only. Here sets use them, too.
//!
//! # Words
//! - A *waiter* is a thread whose set has stopped, and whose node is in a queue. A set of one
//!   operation is *simple*, a set of several *complex*. With strict fairness every waiting set is
//!   complex.
//! - A *session* is the work of one thread on the cells that it has locked. To *serve* a waiting
//!   set is to perform it, or to end it with an error. To *complete* a waiter is to store the
//!   outcome in its node.
//! - A *cascade* serves waiting sets one after the other, because each set that proceeds may let
//!   others proceed. A set is *aged* if it has waited longer than the bound of strict fairness.
//!
//! # Files
//! Each floor uses those below it only:
//!
//! | floor | files |
//! |---|---|
//! | what users see | `array.rs`, `builder.rs`, `permit.rs` |
//! | what a call does | `set.rs`: performs a set, waits for it; `manage.rs`: values, close |
//! | sessions | `session/mod.rs`; with the array lock `session/cascade.rs`, `session/aged.rs` and `session/heap.rs` |
//! | what is done at once | this file, and `pass.rs` for a set of several |
//! | what an array is made of | `cell.rs`, `node.rs`, `array_lock.rs`, `word.rs`, `op.rs`, `error.rs` |
//! | static memory | `sleep/groups`: waiters; `sleep/slots.rs`: threads that find a cell locked |
//!
//! # Properties
//! - A set takes effect at one moment between call and return, or not at all. The array is strictly
//!   serialisable.
//! - *No set waits that could proceed.* Before a session unlocks its cells, it serves all waiting
//!   sets that can proceed. So a waiter sees every value that is there between two calls, however
//!   short it lasts.
//! - An arriving set is tried first. Of the waiting sets, sets that change nothing are served
//!   first, then the oldest that can proceed. A set keeps its age when it moves to another queue.
//!   `session/aged.rs` says what strict fairness adds.
//! - If no flag is in the way, one operation is one compare-exchange, or for zero (look fence) and
//!   one load. A set is one compare-exchange and one store a semaphore, and one fence. If the same
//!   set comes again and again, it is one compare-exchange, one store a semaphore, and one fence.
//!   None of them makes a system call.
//! - Operations on different semaphores do not contend, unless one set names both again and again
//!   (`pass.rs`). A complex waiter slows down operations on the semaphores that decide about its
//!   set, and no others.
//! - Another thread completes a waiter. The waiter only has to wake up and return.
//! - Nothing is allocated after the array is made, with two exceptions: the watches of a set of
//!   more than eight operations, if it meets complex waiters or becomes one; and the wakers of more
//!   than 32 tasks that one call serves.
//! - The stores that publish the words are the last touch (law 2 of ARCHITECTURE.md). A thread that
//!   has seen all effects of a call may free the array. With counters it may not, because the call
//!   counts afterwards. Nor may it if the call waits and can time out, be interrupted, or become
//!   aged. Its thread may be about to lock the array for that when its set is served.
//!
//! # State
//! A cell a semaphore, and a few words for the whole array:
//!
//! | what | where | guarded by |
//! |---|---|---|
//! | value, `LOCK`, `SUBTRACTIONS`, `ZERO`, `COMPLEX`, `CLOSED` | one word, [`State`] | itself; with `LOCK` only the holder writes it |
//! | whether it is a follower, and of which cell | the cell, [`Lead`](crate::cell::Lead) | `LOCK`; of a follower the leader's |
//! | two queues of sets that stop here; watches | the cell | `LOCK`; with `COMPLEX`, `LOCK` and the array lock |
//! | the list of aged sets | the array lock | the array lock |
//!
//! A waiting set is a node on its thread's stack, in the queue of the semaphore where it stops. A
//! simple set depends on that semaphore only. A complex set depends on the semaphores of its
//! earlier operations, too, so it has a *watch* on each of them. `COMPLEX` marks all these cells.
//!
//! | flag | set by | cleared by | meaning |
//! |---|---|---|---|
//! | `LOCK` | a session (lock), a set in one pass (lock with value) | the same, (publish), (unlock); never by (follow) | other threads wait, or part it from its leader (part) |
//! | `SUBTRACTIONS` | (publish), if a subtraction is queued | (publish) | an addition must serve |
//! | `ZERO` | (publish), if the other queue is not empty | (publish) | a change to zero must serve |
//! | `COMPLEX` | (publish), if a complex set is queued here, or watches | (publish) | a session needs the array lock |
//! | `CLOSED` | (publish) of `close` | never | every operation fails |
//!
//! # Transitions
//! | what | if | label |
//! |---|---|---|
//! | one operation changes the word, or after (look fence) finds zero | no flag is in the way: [`State::alone`] | (at once) |
//! | each word of a set becomes its next value with `LOCK` | the same | (lock with value) |
//! | each of these words loses `LOCK`; if (lock with value) failed somewhere, also its change | | (unlock) |
//! | a word of a follower becomes its next value | the set has locked the leader | (store led) |
//! | instead of (unlock) the cell becomes a follower of the set's first | `pass.rs` | (follow) |
//! | a session locks a cell | not `LOCK`; without the array lock, not `COMPLEX` | (lock) |
//! | a session locks a follower, which is none from then on | it has locked the leader | (part) |
//! | the session publishes a cell | it has locked the cell | (publish) |
//! | a thread reads a value, after (look fence) | not `LOCK` | (read value) |
//! | a word that the thread has not locked refuses a set, after (look fence) | not `LOCK` | (refused) |
//! | a session takes the array lock, releases it | | (take array lock), (release array lock) |
//! | the session completes a waiter | its node is out of its queue, the words are published | (complete) |
//! | the waiter reads its outcome | | (read outcome) |
//!
//! A session does what (at once) and (lock with value) cannot do. It locks the cells, evaluates the
//! set on the words, serves, and publishes. Without the array lock it meets simple waiters only,
//! and serves them by a walk along one queue a cell. If its set is complex and must wait, or if it
//! meets `COMPLEX`, it begins again with the array lock, and serves by a cascade. Other sets take
//! the array lock only if they find their cells locked again and again.
//!
//! # Invariants
//! 1. *A waiting set stops where it is queued.* While no cell has `LOCK`, an evaluation would stop
//!    the set at the semaphore where it is queued. An evaluation put it there, under the `LOCK` of
//!    all cells up to that one. A later change that matters to the set finds a flag: `SUBTRACTIONS`
//!    if the value grows, `ZERO` if it becomes zero, `COMPLEX` for any change where a complex set
//!    is queued or watches. With that flag the change needs a session, which serves before it
//!    publishes. With strict fairness a set may also stop for the oldest aged set. A session that
//!    changes which set that is, or where it stops, serves the sets that stopped for it.
//! 2. Operations after the one where a set stops do not matter to it: the set cannot get further
//!    before that one can proceed.
//! 3. Only its holder, or its leader's, writes a word with `LOCK`. No other thread learns a value
//!    from such a word. So a session takes effect at one moment, although it publishes its words
//!    one by one: a thread that has seen one of them, and comes to another before that is
//!    published, waits.
//! 4. A session that waits for a cell while it has locked another has the array lock
//!    (`session/mod.rs`). So there is no deadlock, in whatever order sets name semaphores.
//! 5. A node leaves its queue once. A session takes it out and completes it, or its own thread
//!    takes it out and returns.
//! 6. In a queue tickets ascend. A new node draws its ticket with the cell locked. A node that
//!    moves is put where its ticket belongs.
//!
//! # Ordering
//! | access | order | pairs with |
//! |---|---|---|
//! | (at once) compare-exchange, and the load that finds zero | Acquire, Release | (at once), (unlock), (publish) |
//! | (lock with value), (lock) compare-exchange | Acquire | (at once), (unlock), (publish) |
//! | (unlock), (publish) store | Release | (at once), (lock with value), (lock), (read value) |
//! | (read value), (refused) load | Acquire | (at once), (unlock), (publish) |
//! | (look fence) | SeqCst | another thread's (look fence) |
//! | a session's fence after it has read `CLOSED` | Acquire | (publish) |
//! | (complete) store of the outcome | Release | (read outcome) |
//! | (read outcome) load | Acquire | (complete) |
//! | (take array lock), (release array lock) | Acquire, Release | each other |
//! | store and load of `closed` | Release, Acquire | each other |
//!
//! Stores between (lock) and (publish) are relaxed: a thread that reads one sees `LOCK`, and learns
//! nothing. A waiter sees by (complete) and (read outcome) what was done before its units were
//! given: the session that serves it has acquired each cell that it evaluates.
//!
//! Calls that write come one after the other: at each word the later one acquires what the earlier
//! one released. A call that only looks writes nothing, so its load could come before what its
//! thread did in its calls before. Let two threads each add to one semaphore, and then look at the
//! other's: both could miss the addition. So (look fence) precedes each such load. Of two threads
//! one comes to it later, and its look sees what preceded the other's (look fence). A set that is
//! refused looks at its last word while it has locked the others. A word that it has locked itself
//! needs no fence. Where a read-modify-write is a full fence, (look fence) is an order for the
//! compiler only: (at once) is one, and all other calls that write end with the slots' (releasing
//! fence). No other fence but the slots' is `SeqCst`.
//!
//! # Wrap-around
//! Tickets have 64 bits.
//!
//! # Sources
//! C. Mason, "ipc semaphores: reduce ipc_lock contention in semtimedop" (LKML, April 2010), with
//! the questions of N. Piggin and M. Spraul: order after a move (tickets), values waited for within
//! a set (evaluation in the set's order, whatever the order of locking), starvation (aged sets).
//! Linux's `ipc/sem.c` for the semantics, and E. Schenk's note of 1995 there on why the thread that
//! makes a zero must serve it. Linux's `ntsync` and C++'s `std::lock` for locking without an order.

use crate::Error;
use crate::array_lock::ArrayLock;
use crate::cell::{Cell, NONE};
use crate::node::Outcome;
use crate::op::Op;
use crate::sleep::slots::Slot;
use crate::word::State;
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::membarrier;
use ulocks_core::meter::Meter;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use ulocks_core::sync::{AtomicU32, AtomicU64, fence};

/// The greatest value that fits a word.
pub const GREATEST_LIMIT: u32 = State::GREATEST;

/// The result of an attempt without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The set was performed.
    Done,
    /// The set cannot proceed now: it stops at this operation.
    Blocks(usize),
    /// Only a session can tell.
    Unclear,
}

/// How many sets wait at a semaphore. Each waits at the semaphore of its first operation that
/// cannot proceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiters {
    /// Until its value grows (`GETNCNT`).
    pub increase: usize,
    /// Until its value is zero (`GETZCNT`).
    pub zero: usize,
}

/// Which sets may pass which. [`SemArray`](crate::SemArray#fairness) says what each choice
/// promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// As System V on Linux: an arriving set is tried first, and of the waiting sets the oldest
    /// that can proceed does. A set that needs much may wait for ever while others take turns with
    /// what it needs.
    #[default]
    Barging,
    /// A set that has waited for `after` stops later sets from taking what it still needs, until
    /// it has it. Of several such sets the oldest does.
    Strict {
        /// For how long other sets may pass it; zero for not at all.
        after: Duration,
    },
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

/// Begins a cache line. Every operation reads the fields above it, and writes none of them but
/// counters. The fields below it are written.
#[repr(align(64))]
struct OwnLine;

// SAFETY: what is not atomic is guarded as `cell.rs` and the table in `node.rs` say. Only threads
// that have what guards a node use it.
unsafe impl<P: InOneProcess> Send for RawSemArray<P> {}
// SAFETY: as above.
unsafe impl<P: InOneProcess> Sync for RawSemArray<P> {}

impl<P: InOneProcess> RawSemArray<P> {
    /// An array of semaphores with these values. Sets have at most `max_ops` operations, which is
    /// one at least, and 2^29 at most.
    ///
    /// # Panics
    /// If `limit` is greater than [`Builder::GREATEST_LIMIT`](crate::Builder::GREATEST_LIMIT), or a
    /// value greater than `limit`. The words have no room for more. If there are 2^32 - 1 values or
    /// more: an index has 32 bits.
    #[must_use]
    pub fn new(values: &[u32], limit: u32, max_ops: usize, fairness: Fairness) -> Self {
        assert!(values.len() < NONE as usize, "there are more semaphores than indices");
        assert!(limit <= State::GREATEST, "the limit does not fit a word");
        assert!(values.iter().all(|&value| value <= limit), "a value is greater than the limit");
        Self {
            cells: values.iter().map(|&value| Cell::new(value)).collect(),
            limit,
            max_ops: max_ops.clamp(1, Outcome::MOST_OPS),
            fairness,
            meter: P::Meter::INIT,
            shared: OwnLine,
            tickets: AtomicU64::new(0),
            array_lock: ArrayLock::new(),
            closed: AtomicU32::new(0),
        }
    }

    /// (at once): one operation, if no flag is in the way.
    ///
    /// A compare-exchange that fails is Relaxed. Only an operation that changes the word comes to
    /// it, so the value it finds then never completes the operation. The attempt that succeeds
    /// acquires.
    #[inline]
    pub(crate) fn perform_one(&self, op: &Op) -> Attempt {
        let Some(cell) = self.cells.get(op.index()) else { return Attempt::Unclear };
        if !op.alters() {
            look_fence();
        }
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
        self.refused(cell, op, 0)
    }

    /// The word after the operation, if it can proceed and no flag is in the way.
    #[inline]
    pub(crate) fn alone(&self, word: u32, op: &Op) -> Option<u32> {
        State(word).alone(op, self.limit).map(|next| next.0)
    }

    /// (refused): the result of a set that did not get beyond `op`, whose cell this thread has not
    /// locked.
    #[cold]
    pub(crate) fn refused(&self, cell: &Cell, op: &Op, at: usize) -> Attempt {
        look_fence();
        self.stopped(cell.word.load(Acquire), op, at)
    }

    /// The result of a set that did not get beyond `op`, by the word of a cell that this thread has
    /// locked, or that (refused) has read.
    #[cold]
    pub(crate) fn stopped(&self, word: u32, op: &Op, at: usize) -> Attempt {
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
}

/// (look fence): precedes the load of a call that may change nothing.
#[inline]
pub(crate) fn look_fence() {
    if membarrier::RMW_IS_FENCE {
        membarrier::light();
    } else {
        fence(SeqCst);
    }
}
