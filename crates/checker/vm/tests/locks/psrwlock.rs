//! The reader-writer lock that M. Desnoyers proposed in 2008 (psrwlock), with the lost wake-up of
//! its slow unlock.
//!
//! A rendition for user space of the protocol as our design notes describe it, for one class of
//! readers (preemptable threads) and writers of the same class: nothing here raises a context, and
//! a thread that would spin in the kernel sleeps at once. No line of the kernel patch was looked at
//! for it.
//!
//! # State
//! | word | bits | meaning |
//! |---|---|---|
//! | `uc` | `WRITER` | a writer that came by the fast path holds the lock |
//! | | `SLOW_WRITER` | there is a writer in the slow path: fast paths are shut |
//! | | `QUEUE_ACTIVE` | a thread is in the wait queue |
//! | | `ONE_READER`... | how many readers hold the lock |
//! | `ws` | `QUEUE_MUTEX` | the wait queue is being changed |
//! | | `COUNT_MUTEX` | the count of slow writers and `SLOW_WRITER` are being brought into line |
//! | | `HELD` | a writer that came by the slow path holds the lock |
//! | | `ONE_SLOW`... | how many writers are in the slow path |
//! | `prio` | low half | how many writers lock slow readers out |
//! | | high half | how many readers are in the slow path, let in by no writer |
//!
//! # Protocol
//! - A reader enters by `uc` 0 to one reader, or while neither writer bit is set. Otherwise it
//!   waits until no writer locks slow readers out, counts itself in `prio`, waits until `WRITER` is
//!   clear, counts itself in `uc`, and leaves `prio`.
//! - A writer enters by `uc` 0 to `WRITER`. Otherwise it counts itself in `ws` and sets
//!   `SLOW_WRITER`, locks slow readers out, waits until those that were let in have left `prio`,
//!   *then* until no thread is in `uc` (a reader enters `uc` before it leaves `prio`, so none falls
//!   between the two), and takes `HELD`.
//! - To wait is to set `QUEUE_ACTIVE`, to look once more, to enter the queue and to sleep.
//! - To wake is to take the queue's mutex and, if a reader is counted in `uc`, to leave it to that
//!   reader's unlock.
//!
//! # Invariants
//! 1. A reader in the slow path is counted in `prio` or `uc`, or both.
//! 2. *A thread that changes what another may wait for looks at `QUEUE_ACTIVE` after the change*:
//!    in the value that the change of `uc` itself returned, or in a load that a `SeqCst` fence
//!    keeps behind the change (a waiter has its own between the bit and its last look).
//!
//! # The defect
//! The slow unlock begins with the exchange of the fast one, which fails. It goes on to release
//! `HELD`, to let slow readers in again and to clear `SLOW_WRITER`, and then looks for
//! `QUEUE_ACTIVE` in the value *that first exchange* returned. A reader that queues in between had
//! its last look while the writer still locked it out: it sleeps until another thread's unlock, or
//! for ever. This breaks invariant 2; the repaired form loads `uc` again, behind a fence.
//!
//! # Sources
//! M. Desnoyers, "Priority Sifting Reader-Writer Lock" (LKML, September 2008), as described in our
//! notes.

use std::collections::VecDeque;
use std::sync::Arc;
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicU32, UnsafeCell, fence, spin_until};

/// What is wrong with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The slow unlock looks for sleepers in the value its first exchange returned: the defect.
    StaleUnlock,
    /// The slow unlock loads `uc` again, without a fence before it.
    UnfencedUnlock,
    /// A wake-up wakes one, writers first: a writer that has to wait for a slow reader in the same
    /// queue goes back to sleep, and the reader was not woken.
    WakesOne,
    /// A writer looks at `uc` before it looks at `prio`: a reader that goes from one to the other
    /// is in neither.
    ReadersInTheWrongOrder,
}

const WRITER: u32 = 1;
const SLOW_WRITER: u32 = 2;
const QUEUE_ACTIVE: u32 = 4;
const ONE_READER: u32 = 8;
const READERS: u32 = !(ONE_READER - 1);

const QUEUE_MUTEX: u32 = 1;
const COUNT_MUTEX: u32 = 2;
const HELD: u32 = 4;
const ONE_SLOW: u32 = 8;

const ONE_WRITER_SUBSCRIBED: u32 = 1;
const WRITERS_SUBSCRIBED: u32 = 0xffff;
const ONE_READER_SUBSCRIBED: u32 = 0x1_0000;

#[derive(Default)]
struct Queue {
    readers: VecDeque<usize>,
    writers: VecDeque<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
}

impl Queue {
    fn of(&mut self, kind: Kind) -> &mut VecDeque<usize> {
        match kind {
            Kind::Reader => &mut self.readers,
            Kind::Writer => &mut self.writers,
        }
    }

    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }
}

pub struct PsRwLock {
    uc: AtomicU32,
    ws: AtomicU32,
    prio: AtomicU32,
    /// Under `QUEUE_MUTEX`.
    queue: UnsafeCell<Queue>,
    /// For each thread, whether it has been woken.
    woken: Box<[AtomicU32]>,
    bug: Option<Bug>,
}

// SAFETY: `queue` is accessed under `QUEUE_MUTEX` only.
unsafe impl Sync for PsRwLock {}

impl PsRwLock {
    /// A lock for threads with the numbers below `threads`.
    pub fn new(threads: usize, bug: Option<Bug>) -> Self {
        Self {
            uc: AtomicU32::new(0),
            ws: AtomicU32::new(0),
            prio: AtomicU32::new(0),
            queue: UnsafeCell::new(Queue::default()),
            woken: (0..threads).map(|_| AtomicU32::new(0)).collect(),
            bug,
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub fn read_lock(&self, me: usize) {
        let mut seen = 0;
        while seen & (WRITER | SLOW_WRITER) == 0 {
            match self.uc.compare_exchange(seen, seen + ONE_READER, Acquire, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
        let subscribe = |prio: u32| (prio & WRITERS_SUBSCRIBED == 0).then_some(prio + ONE_READER_SUBSCRIBED);
        self.wait(
            me,
            Kind::Reader,
            || self.prio.load(Acquire) & WRITERS_SUBSCRIBED == 0,
            || self.prio.fetch_update(AcqRel, Relaxed, subscribe).is_ok(),
        );
        let enter = |uc: u32| (uc & WRITER == 0).then_some(uc + ONE_READER);
        self.wait(
            me,
            Kind::Reader,
            || self.uc.load(Acquire) & WRITER == 0,
            || self.uc.fetch_update(Acquire, Relaxed, enter).is_ok(),
        );
        self.prio.fetch_sub(ONE_READER_SUBSCRIBED, Release);
    }

    pub fn read_unlock(&self) {
        let uc = self.uc.fetch_sub(ONE_READER, Release) - ONE_READER;
        if uc & QUEUE_ACTIVE != 0 {
            self.wake();
        }
    }

    pub fn write_lock(&self, me: usize) {
        if self.uc.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok() {
            return;
        }
        // The mutex and the count in one exchange.
        let before = self.take_bit(COUNT_MUTEX, ONE_SLOW);
        if before < ONE_SLOW {
            self.uc.fetch_add(SLOW_WRITER, Relaxed);
        }
        self.ws.fetch_sub(COUNT_MUTEX, Release);

        self.prio.fetch_add(ONE_WRITER_SUBSCRIBED, AcqRel);
        let drained = || self.prio.load(Acquire) < ONE_READER_SUBSCRIBED;
        let empty = || self.uc.load(Acquire) & (WRITER | READERS) == 0;
        if self.has(Bug::ReadersInTheWrongOrder) {
            self.wait(me, Kind::Writer, empty, || true);
            self.wait(me, Kind::Writer, drained, || true);
        } else {
            self.wait(me, Kind::Writer, drained, || true);
            self.wait(me, Kind::Writer, empty, || true);
        }
        self.wait(
            me,
            Kind::Writer,
            || self.ws.load(Relaxed) & HELD == 0,
            || self.ws.fetch_or(HELD, Acquire) & HELD == 0,
        );
    }

    pub fn write_unlock(&self) {
        let Err(seen) = self.uc.compare_exchange(WRITER, 0, Release, Relaxed) else { return };
        if seen & WRITER != 0 {
            let uc = self.uc.fetch_sub(WRITER, Release) - WRITER;
            if uc & QUEUE_ACTIVE != 0 {
                self.wake();
            }
            return;
        }
        self.ws.fetch_and(!HELD, Release);
        self.prio.fetch_sub(ONE_WRITER_SUBSCRIBED, Release);
        let before = self.take_bit(COUNT_MUTEX, 0);
        let is_last = before < 2 * ONE_SLOW;
        if is_last {
            self.uc.fetch_sub(SLOW_WRITER, Release);
        }
        self.ws.fetch_sub(COUNT_MUTEX + ONE_SLOW, Release);
        let uc = if self.has(Bug::StaleUnlock) {
            seen - if is_last { SLOW_WRITER } else { 0 }
        } else {
            if !self.has(Bug::UnfencedUnlock) {
                fence(SeqCst);
            }
            self.uc.load(Relaxed)
        };
        if uc & QUEUE_ACTIVE != 0 {
            self.wake();
        }
    }

    /// Takes a mutex of `ws`, and adds `more` with it. The value before.
    fn take_bit(&self, bit: u32, more: u32) -> u32 {
        let mut before = 0;
        spin_until(|| {
            before = self.ws.load(Relaxed);
            before & bit == 0
                && self.ws.compare_exchange(before, before + bit + more, Acquire, Relaxed).is_ok()
        });
        before
    }

    /// Waits until `enter` has succeeded, which is tried when `may_enter`.
    fn wait(&self, me: usize, kind: Kind, may_enter: impl Fn() -> bool, enter: impl Fn() -> bool) {
        loop {
            if may_enter() && enter() {
                return;
            }
            self.take_bit(QUEUE_MUTEX, 0);
            if self.queue(|queue| queue.is_empty()) {
                self.uc.fetch_or(QUEUE_ACTIVE, AcqRel);
            }
            fence(SeqCst);
            if may_enter() {
                self.leave_queue();
                continue;
            }
            self.woken[me].store(0, Relaxed);
            self.queue(|queue| queue.of(kind).push_back(me));
            self.ws.fetch_sub(QUEUE_MUTEX, Release);
            while self.woken[me].load(Relaxed) == 0 {
                futex::wait(&self.woken[me], 0, u32::MAX, None, true);
            }
            self.take_bit(QUEUE_MUTEX, 0);
            self.queue(|queue| queue.of(kind).retain(|thread| *thread != me));
            self.leave_queue();
        }
    }

    /// Releases the queue's mutex; the bit says whether the queue is empty.
    fn leave_queue(&self) {
        if self.queue(|queue| queue.is_empty()) {
            self.uc.fetch_and(!QUEUE_ACTIVE, AcqRel);
        }
        self.ws.fetch_sub(QUEUE_MUTEX, Release);
    }

    fn wake(&self) {
        self.take_bit(QUEUE_MUTEX, 0);
        let uc = self.uc.load(Relaxed);
        if uc & QUEUE_ACTIVE != 0 && uc & READERS == 0 {
            let count = if self.has(Bug::WakesOne) { 1 } else { usize::MAX };
            let woken: Vec<usize> =
                self.queue(|queue| queue.writers.iter().chain(&queue.readers).copied().take(count).collect());
            for thread in woken {
                self.woken[thread].store(1, Relaxed);
                futex::wake((&raw const self.woken[thread]).addr(), 1, u32::MAX, true);
            }
        }
        self.ws.fetch_sub(QUEUE_MUTEX, Release);
    }

    /// Under `QUEUE_MUTEX`.
    fn queue<R>(&self, body: impl FnOnce(&mut Queue) -> R) -> R {
        // SAFETY: the mutex is held, and `body` is no operation of the machine.
        self.queue.with_mut(|queue| body(unsafe { &mut *queue }))
    }
}

struct Guarded {
    lock: PsRwLock,
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is accessed under the lock. Where the lock is broken, the machine ends the run
// before the access.
unsafe impl Sync for Guarded {}

/// What one thread does with the lock.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    Read,
    Write,
}

/// Each thread does what it is told, one after the other.
pub fn guarding<const THREADS: usize>(
    program: [&'static [Does]; THREADS],
    bug: Option<Bug>,
) -> impl Fn() + 'static {
    move || {
        let guarded = Arc::new(Guarded { lock: PsRwLock::new(THREADS, bug), data: UnsafeCell::new(0) });
        super::together(THREADS, move |me| {
            let Guarded { lock, data } = &*guarded;
            for does in program[me] {
                match does {
                    Does::Read => {
                        lock.read_lock(me);
                        // SAFETY: the lock is held.
                        data.with(|data| unsafe { data.read() });
                        lock.read_unlock();
                    }
                    Does::Write => {
                        lock.write_lock(me);
                        // SAFETY: the lock is held.
                        data.with_mut(|data| unsafe { *data += 1 });
                        lock.write_unlock();
                    }
                }
            }
        });
    }
}
