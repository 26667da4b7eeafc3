//! A session: the cells that a thread has locked, what it changes in them, and the waiters that it
//! has to complete.
//!
//! A session evaluates on the words themselves, because no other thread writes a word with `LOCK`
//! or learns its value. If the set stops, the session takes back what it did. This is two-phase
//! locking: all cells are locked before the first is published.
//!
//! # Locking without an order
//! Only a session with the array lock waits for a cell while it has locked another. A session
//! without it locks cell by cell. If it finds one locked, it unlocks all, waits for that one, and
//! begins with it. After [`RESTARTS`] rounds it takes the array lock. So at most one thread waits
//! for a cell while it has locked others, and the thread that it waits for does not wait. There is
//! no deadlock.
//!
//! A cell may be a follower: it stays locked, and belongs to the thread that locks its leader
//! (`pass.rs`). A session that comes to one locks the leader, too, and takes the follower over
//! (part). If the leader is locked, the session waits for that cell, by the same rule.
//!
//! # Publishing
//! 1. The array lock is released first (release array lock). The session is done with all that it
//!    guards, and the cells are still locked.
//! 2. (publish) Each word is stored with its value, its flags, and without `LOCK`. A plain store is
//!    enough, because no other thread writes a word with `LOCK`. The last of these stores is the
//!    last touch of the array.
//! 3. One fence, and one load of the parking slot: if a thread waits there for one of the cells, it
//!    is woken (`sleep/slots.rs`).
//! 4. (complete) The session completes the waiters that it has served, and wakes them. A node is
//!    alive until it is completed. The waiters sleep in static memory (`sleep/groups`).

mod aged;
mod cascade;
mod heap;

pub(crate) use heap::Heap;

use crate::cell::{Lead, NONE};
use crate::node::{Node, Outcome};
use crate::op::Op;
use crate::raw::RawSemArray;
use crate::sleep::groups::{FEW, Wakes};
use crate::word::{State, Stop};
use core::{mem, ptr};
use ulocks_core::membarrier;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::{self, Wakers};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{fence, is_abandoned};

/// How often a session without the array lock starts again because a cell is locked. It was not
/// measured. Each round waits for one holder, so it bounds how many strangers pass a set before
/// that shuts all others out. Models have fewer, so that they come to the array lock.
const RESTARTS: usize = if FEW { 1 } else { 16 };

/// Why a cell was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Another thread has locked it.
    Busy,
    /// The session needs the array lock: to touch the queues of a cell with `COMPLEX`, or because
    /// it has started again too often.
    NeedsArrayLock,
    /// The array was closed.
    Closed,
}

/// The operation at which a set stops, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub at: usize,
    pub why: Stop,
}

/// The head of this file says what a session is.
pub(crate) struct Session<'a, P: InOneProcess> {
    pub array: &'a RawSemArray<P>,
    /// A number that no other session has while this one lives.
    number: usize,
    /// The cell that was locked last.
    held: u32,
    /// Whether it has the array lock.
    pub has_array_lock: bool,
    /// Whether its sets pass the oldest aged set, and do not stop for it.
    pub passes: bool,
    /// Whether it closes the array.
    pub closes: bool,
    /// Nodes that were taken out of their queues and are to be completed, linked by `next`.
    first_completed: *const Node,
    last_completed: *const Node,
}

impl<'a, P: InOneProcess> Session<'a, P> {
    /// A session that has locked nothing. `here` is a byte on the caller's stack; its address is
    /// the session's number.
    pub fn new(array: &'a RawSemArray<P>, here: &'a u8) -> Self {
        Self {
            array,
            number: (&raw const *here).addr(),
            held: NONE,
            has_array_lock: false,
            passes: false,
            closes: false,
            first_completed: ptr::null(),
            last_completed: ptr::null(),
        }
    }

    /// A session with the array lock.
    pub fn with_array_lock(array: &'a RawSemArray<P>, here: &'a u8) -> Self {
        array.array_lock.lock();
        Self { has_array_lock: true, ..Self::new(array, here) }
    }

    /// Locks a cell, if that is possible at once.
    fn try_lock(&mut self, index: u32) -> Result<(), Obstacle> {
        match self.try_lock_alone(index) {
            Err(Obstacle::Busy) => self.try_part(index),
            done => done,
        }
    }

    /// (part): locks the leader of a follower, and takes the follower over.
    #[cold]
    fn try_part(&mut self, index: u32) -> Result<(), Obstacle> {
        let cell = &self.array.cells[index as usize];
        let lead = cell.lead();
        let Some(leader) = lead.leader() else { return Err(Obstacle::Busy) };
        self.try_lock_alone(leader)?;
        if cell.lead() != lead {
            return Err(Obstacle::Busy); // parted meanwhile
        }
        let leader = &self.array.cells[leader as usize].lead;
        leader.store(Lead(leader.load(Relaxed)).less().0, Relaxed);
        cell.lead.store(Lead::ALONE.0, Relaxed);
        self.note_locked(index);
        Ok(())
    }

    /// (lock): locks a cell that follows no other, if that is possible at once.
    fn try_lock_alone(&mut self, index: u32) -> Result<(), Obstacle> {
        let cell = &self.array.cells[index as usize];
        let mut word = cell.word.load(Relaxed);
        loop {
            if State(word).has(State::CLOSED) {
                fence(Acquire); // the caller learns that the array was closed
                return Err(Obstacle::Closed);
            }
            if State(word).has(State::LOCK) {
                let mine = cell.holder.load(Relaxed) == self.number;
                return if mine { Ok(()) } else { Err(Obstacle::Busy) };
            }
            if State(word).has(State::COMPLEX) && !self.has_array_lock {
                return Err(Obstacle::NeedsArrayLock);
            }
            match cell.word.compare_exchange_weak(word, word | State::LOCK, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        self.note_locked(index);
        Ok(())
    }

    /// Adds a cell that was locked to those that this session holds.
    fn note_locked(&mut self, index: u32) {
        let cell = &self.array.cells[index as usize];
        cell.holder.store(self.number, Relaxed);
        // SAFETY: this session has LOCK, and the field is the holder's.
        unsafe { cell.inside(|inside| inside.held_before = self.held) };
        self.held = index;
    }

    /// Locks a cell, for a session with the array lock. It may have locked others. Returns false if
    /// the array was closed.
    pub fn lock(&mut self, index: u32) -> bool {
        debug_assert!(
            self.has_array_lock,
            "only with the array lock may a session wait for a cell while it has locked another"
        );
        loop {
            match self.try_lock(index) {
                Ok(()) => return true,
                Err(Obstacle::Closed) => return false,
                Err(_) => self.wait_for(index),
            }
        }
    }

    /// Locks the cells of `ops`, for a session without the array lock. If that fails, no cell is
    /// locked.
    pub fn lock_all(&mut self, ops: &[Op]) -> Result<(), Obstacle> {
        let mut contended = None;
        for _ in 0..=RESTARTS {
            let all = contended.into_iter().chain(ops.iter().map(|op| op.index));
            let mut failed = None;
            for index in all {
                if let Err(obstacle) = self.try_lock(index) {
                    failed = Some((index, obstacle));
                    break;
                }
            }
            match failed {
                None => return Ok(()),
                Some((index, Obstacle::Busy)) => {
                    self.publish();
                    self.wait_for(index);
                    contended = Some(index);
                }
                Some((_, obstacle)) => {
                    self.publish();
                    return Err(obstacle);
                }
            }
        }
        Err(Obstacle::NeedsArrayLock)
    }

    /// Waits until no thread has locked a cell, or its leader.
    fn wait_for(&self, index: u32) {
        let cells = &self.array.cells;
        let index = cells[index as usize].lead().leader().unwrap_or(index);
        self.array.slot().wait_while::<P>(index, || cells[index as usize].is_held());
    }

    /// The value of a locked cell.
    pub fn value(&self, index: u32) -> u32 {
        State(self.array.cells[index as usize].word.load(Relaxed)).value()
    }

    /// Gives a locked cell another value.
    pub fn set_value(&self, index: u32, value: u32) {
        let word = &self.array.cells[index as usize].word;
        word.store(State(word.load(Relaxed)).set(value).0, Relaxed);
    }

    /// Performs `ops` in their order, or changes nothing. A session with the array lock locks the
    /// cells here, as far as the set gets; without it they are locked already. A set whose `ticket`
    /// is greater than that of the oldest aged set stops for it (`aged.rs`).
    pub fn evaluate(&mut self, ops: &[Op], ticket: u64) -> Result<(), Stopped> {
        let stops_for_aged = self.has_array_lock && self.stops_for_aged(ops, ticket);
        for (at, op) in ops.iter().enumerate() {
            let locked = !self.has_array_lock || self.lock(op.index);
            let word = &self.array.cells[op.index as usize].word;
            let next = if !locked {
                Err(Stop::Closed)
            } else if stops_for_aged && self.takes_from_aged(op) {
                Err(Stop::Blocks)
            } else {
                State(word.load(Relaxed)).after(op, self.array.limit)
            };
            match next {
                Ok(next) => word.store(next.0, Relaxed),
                Err(why) => {
                    self.take_back(&ops[..at]);
                    return Err(Stopped { at, why });
                }
            }
        }
        Ok(())
    }

    /// Undoes `ops`, which were performed.
    fn take_back(&self, ops: &[Op]) {
        for op in ops.iter().rev() {
            let word = &self.array.cells[op.index as usize].word;
            word.store(State(word.load(Relaxed)).before(op).0, Relaxed);
        }
    }

    /// Serves the waiting sets of a cell without `COMPLEX`, the oldest that can proceed first. They
    /// are simple. A subtraction lets no other subtraction proceed, so one walk is enough. If the
    /// walk leaves zero, the sets that wait for zero follow.
    pub fn drain(&mut self, index: u32) {
        let cell = &self.array.cells[index as usize];
        let mut value = self.value(index);
        // SAFETY: the cell is locked, and its nodes are alive and simple.
        unsafe {
            if value != 0 {
                let waiting = cell.inside(|inside| inside.subtractions.iter());
                for node in waiting {
                    let wanted = (*node).ops()[0].amount;
                    if wanted <= value {
                        value -= wanted;
                        self.take_out(node);
                        self.will_complete(node, Outcome::Done);
                    }
                    if value == 0 {
                        break;
                    }
                }
                self.set_value(index, value);
            }
            if value == 0 {
                let waiting = cell.inside(|inside| inside.others.iter());
                for node in waiting {
                    self.take_out(node);
                    self.will_complete(node, Outcome::Done);
                }
            }
        }
    }

    /// Takes a node out of its queue. Its watches are not touched.
    ///
    /// # Safety
    /// The node is in a queue of a cell whose inside the session may touch.
    pub unsafe fn take_out(&mut self, node: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            let (at, complex) = (*node).links(|links| (links.at, links.complex));
            let op = &(*node).ops()[at];
            self.array.cells[op.index as usize].inside(|inside| inside.dequeue(node, op, complex));
        }
    }

    /// Notes the outcome of a node that was taken out.
    ///
    /// # Safety
    /// The node is out of its queue, and neither noted nor completed.
    pub unsafe fn will_complete(&mut self, node: *const Node, outcome: Outcome) {
        // SAFETY: the node belongs to this session.
        unsafe {
            (*node).links(|links| {
                links.outcome = outcome;
                links.next = ptr::null();
            });
            if self.last_completed.is_null() {
                self.first_completed = node;
            } else {
                (*self.last_completed).links(|links| links.next = node);
            }
        }
        self.last_completed = node;
    }

    /// Unlocks everything, then completes and wakes the waiters that were served.
    pub fn publish(&mut self) {
        if self.has_array_lock {
            self.strike();
        }
        if !self.first_completed.is_null() {
            // Here, because the array may be gone when they are woken.
            self.array.meter.count(Event::Woke);
        }
        let slot = self.array.slot();
        let had_array_lock = mem::take(&mut self.has_array_lock);
        let key = had_array_lock.then(|| self.array.array_lock.unlock_without_waking()).flatten();
        let mut bits = 0;
        while self.held != NONE {
            bits |= 1 << (self.held % 32);
            self.publish_last();
        }
        if bits != 0 {
            slot.released(bits);
        }
        if let Some(key) = key {
            key.wake(1);
        }
        self.complete();
    }

    /// (publish): publishes the cell that was locked last.
    fn publish_last(&mut self) {
        let cell = &self.array.cells[self.held as usize];
        // SAFETY: the cell is locked, and its flags are read without following a queue.
        let (before, flags) = unsafe { cell.inside(|inside| (inside.held_before, inside.flags())) };
        self.held = before;
        let value = State(cell.word.load(Relaxed)).value();
        let closed = if self.closes { State::CLOSED } else { 0 };
        cell.holder.store(0, Relaxed);
        membarrier::store(&cell.word, State(flags | closed).set(value).0, Release);
    }

    /// Completes the waiters that were served, (complete), and wakes them.
    fn complete(&mut self) {
        if self.first_completed.is_null() {
            return;
        }
        let mut tasks = Wakers::new();
        self.complete_and_wake(&mut tasks);
        // A waker may do anything: it comes last.
        tasks.wake();
    }

    /// The same, but for tasks, whose wakers are added to `tasks`.
    fn complete_and_wake(&mut self, tasks: &mut Wakers) {
        let mut wakes = Wakes::new();
        let mut node = mem::replace(&mut self.first_completed, ptr::null());
        self.last_completed = ptr::null();
        while !node.is_null() {
            // SAFETY: a node that was taken out belongs to this session until it is completed, and
            // is alive until then.
            unsafe {
                let (next, seat, bell, outcome) =
                    (*node).links(|links| (links.next, links.seat, links.bell, links.outcome));
                // The node of a task is alive until its bell is answered.
                Node::complete(node, outcome);
                seat.into_iter().for_each(|seat| wakes.add(seat));
                if !bell.is_null() {
                    tasks.add(queue::Node::answer(bell, queue::Kind::Granted));
                }
                node = next;
            }
        }
    }
}

impl<P: InOneProcess> Drop for Session<'_, P> {
    fn drop(&mut self) {
        let published = self.held == NONE && !self.has_array_lock;
        debug_assert!(published || is_abandoned(), "a session ends by being published");
    }
}
