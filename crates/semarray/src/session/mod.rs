//! A session: the cells a thread has locked, what it makes of them, whom it has to tell.
//!
//! A session evaluates on the words themselves, since nobody acts on a word with `LOCK` or learns
//! its value, and takes back what it did if the set cannot proceed. It is two-phase locking: all
//! cells are locked before the first is published.
//!
//! # Locking without an order
//! Only the holder of `C` waits for a cell while it has another. A session without `C` waits with
//! nothing held; it tries for the rest, and where it finds a cell locked, it lets all go and begins
//! with that one; after [`RESTARTS`] it takes `C`. So of those that wait while they hold there is
//! one, and it waits for one that does not wait.
//!
//! # Publishing
//! 1. `C` is released first. What it guards beyond the cells is done with; the cells are still
//!    locked.
//! 2. (L2) Each word is stored with its value, its flags, and without `LOCK`: plain stores, because
//!    nobody else writes a word with `LOCK`. The last of them is the last touch of the array.
//! 3. (G) One fence, for those who wait for cells: `gate.rs`.
//! 4. (O1) Those whose sets are done are told, and woken: nodes are their owners', and alive until
//!    they are told; where they sleep is static memory: `groups.rs`.

mod aged;
mod array_lock;
mod cascade;
mod heap;

pub(crate) use array_lock::ArrayLock;
pub(crate) use heap::Heap;

use crate::array::InOneProcess;
use crate::cell::NONE;
use crate::node::{Node, Outcome};
use crate::op::Op;
use crate::raw::RawSemArray;
use crate::sleep::groups::{FEW, Wakes};
use crate::word::{State, Stop};
use core::{mem, ptr};
use ulocks_core::membarrier;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::is_abandoned;

/// How often a session without `C` starts again because a cell is locked.
const RESTARTS: usize = if FEW { 1 } else { 16 };

/// Why a cell was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Another session has it.
    Busy,
    /// It takes `C`: to touch what is inside, or to get all cells at last.
    NeedsArrayLock,
    /// The array was closed.
    Closed,
}

/// Where a set stops, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub at: usize,
    pub why: Stop,
}

pub(crate) struct Session<'a, P: InOneProcess> {
    pub array: &'a RawSemArray<P>,
    /// A name that no other session has while this one lives.
    name: usize,
    /// The cell that was locked last.
    held: u32,
    /// Whether it has `C`.
    pub has_array_lock: bool,
    /// Whether it passes by the elders.
    pub passes: bool,
    /// Whether it closes the array.
    pub closes: bool,
    /// Nodes that were taken out of their queues, linked by `next`.
    first_completed: *const Node,
    last_completed: *const Node,
}

impl<'a, P: InOneProcess> Session<'a, P> {
    /// A session that has nothing. `here` is a byte on the caller's stack, whose address names it.
    pub fn new(array: &'a RawSemArray<P>, here: &'a u8) -> Self {
        Self {
            array,
            name: (&raw const *here).addr(),
            held: NONE,
            has_array_lock: false,
            passes: false,
            closes: false,
            first_completed: ptr::null(),
            last_completed: ptr::null(),
        }
    }

    /// A session that has `C`.
    pub fn with_array_lock(array: &'a RawSemArray<P>, here: &'a u8) -> Self {
        array.array_lock.lock();
        Self { has_array_lock: true, ..Self::new(array, here) }
    }

    /// (L1): locks a cell, if that is possible at once.
    fn try_lock(&mut self, index: u32) -> Result<(), Obstacle> {
        let cell = &self.array.cells[index as usize];
        let mut word = cell.word.load(Relaxed);
        loop {
            if State(word).has(State::CLOSED) {
                return Err(Obstacle::Closed);
            }
            if State(word).has(State::LOCK) {
                let mine = cell.holder.load(Relaxed) == self.name;
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
        cell.holder.store(self.name, Relaxed);
        // SAFETY: this session has LOCK; the field is the holder's own.
        unsafe { cell.inside(|inside| inside.held_before = self.held) };
        self.held = index;
        Ok(())
    }

    /// Locks a cell with `C`, whatever else is locked; false if the array was closed.
    pub fn lock(&mut self, index: u32) -> bool {
        debug_assert!(self.has_array_lock, "only the holder of C waits for a cell while it has another");
        loop {
            match self.try_lock(index) {
                Ok(()) => return true,
                Err(Obstacle::Closed) => return false,
                Err(_) => self.wait_for(index),
            }
        }
    }

    /// Locks the cells of `ops` without `C`. If that fails, nothing is locked.
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

    /// Waits until a cell is not locked.
    fn wait_for(&self, index: u32) {
        let cell = &self.array.cells[index as usize];
        self.array.slot().wait_while::<P>(index, || State(cell.word.load(Relaxed)).has(State::LOCK));
    }

    pub fn value(&self, index: u32) -> u32 {
        State(self.array.cells[index as usize].word.load(Relaxed)).value()
    }

    /// Gives a cell that is locked another value.
    pub fn set_value(&self, index: u32, value: u32) {
        let word = &self.array.cells[index as usize].word;
        word.store(State(word.load(Relaxed)).set(value).0, Relaxed);
    }

    /// Performs `ops` in their order, or changes nothing. The cells are locked, or with `C`, locked
    /// here as far as the set gets. The `ticket` says whom it has to stop for.
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

    fn take_back(&self, ops: &[Op]) {
        for op in ops.iter().rev() {
            let word = &self.array.cells[op.index as usize].word;
            word.store(State(word.load(Relaxed)).before(op).0, Relaxed);
        }
    }

    /// Hands the value of a cell without `COMPLEX` to those who wait for it, the oldest that can
    /// proceed first. They only subtract: one walk is enough, and zero is reached at its end or
    /// never.
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

    /// Takes a simple node out of its queue, or one that watches nothing.
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

    /// Notes what a node that was taken out is to be told.
    ///
    /// # Safety
    /// The node is out of its queue, not told yet, and not noted yet.
    pub unsafe fn will_complete(&mut self, node: *const Node, outcome: Outcome) {
        // SAFETY: the node belongs to this session now.
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

    /// Lets go of everything, and tells whoever is to be told.
    pub fn publish(&mut self) {
        if !self.first_completed.is_null() {
            // Here, because the array may be gone when they are woken.
            self.array.meter.count(Event::Woke);
        }
        let slot = self.array.slot();
        let had_array_lock = mem::take(&mut self.has_array_lock);
        let c = had_array_lock.then(|| self.array.array_lock.unlock_without_waking()).flatten();
        let mut bits = 0;
        while self.held != NONE {
            bits |= 1 << (self.held % 32);
            self.publish_last();
        }
        if bits != 0 {
            slot.released(bits);
        }
        if let Some(c) = c {
            c.wake(1);
        }
        self.complete();
    }

    fn publish_last(&mut self) {
        let cell = &self.array.cells[self.held as usize];
        // SAFETY: the cell is locked, and flags are read off without following what is queued.
        let (before, flags) = unsafe { cell.inside(|inside| (inside.held_before, inside.flags())) };
        self.held = before;
        let value = State(cell.word.load(Relaxed)).value();
        let closed = if self.closes { State::CLOSED } else { 0 };
        cell.holder.store(0, Relaxed);
        membarrier::store(&cell.word, State(flags | closed).set(value).0, Release);
    }

    fn complete(&mut self) {
        if self.first_completed.is_null() {
            return;
        }
        let mut wakes = Wakes::new();
        let mut node = mem::replace(&mut self.first_completed, ptr::null());
        self.last_completed = ptr::null();
        while !node.is_null() {
            // SAFETY: whoever was taken out belongs to this session until it is told, and is alive
            // until then.
            unsafe {
                let (next, seat, outcome) = (*node).links(|links| (links.next, links.seat, links.outcome));
                Node::complete(node, outcome);
                seat.into_iter().for_each(|seat| wakes.add(seat));
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
