//! The kernel's side of the futex, as plain data: which threads sleep on which key, what time it
//! is, which choices are drawn.
//!
//! Nothing here is a loom operation, so each function is one indivisible step of the model.
//! `kernel` decides when the steps happen.

use super::clock::Clocks;
use super::model::{Grade, Run};
use crate::sys::types::time::Deadline;
use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// What identifies a futex: its address, and whether it is private, as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) address: usize,
    pub(super) private: bool,
}

/// A thread that sleeps.
pub(super) struct Sleeper {
    key: Cell<Key>,
    bitset: u32,
    woken: Cell<bool>,
    thread: loom::thread::Thread,
}

impl Sleeper {
    pub(super) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// Lets the thread run again. It may be late: the sleeper looks at `is_woken` and nothing else.
    pub(super) fn unpark(&self) {
        self.thread.unpark();
    }
}

/// The state of the modelled kernel in one execution.
pub(super) struct Table {
    run: Rc<Run>,
    /// Oldest first. One queue serves all keys; the order within a key is what counts.
    queue: RefCell<VecDeque<Rc<Sleeper>>>,
    timeouts_drawn: Cell<u32>,
    spurious_drawn: Cell<u32>,
    clocks: Clocks,
}

impl Table {
    pub(super) fn new(run: Rc<Run>) -> Self {
        Self {
            run,
            queue: RefCell::default(),
            timeouts_drawn: Cell::new(0),
            spurious_drawn: Cell::new(0),
            clocks: Clocks::default(),
        }
    }

    pub(super) fn grade(&self) -> Grade {
        self.run.grade
    }

    /// Puts the calling thread at the end of the queue of `key`.
    pub(super) fn enqueue(&self, key: Key, bitset: u32) -> Rc<Sleeper> {
        let sleeper = Rc::new(Sleeper {
            key: Cell::new(key),
            bitset,
            woken: Cell::new(false),
            thread: loom::thread::current(),
        });
        self.queue.borrow_mut().push_back(Rc::clone(&sleeper));
        sleeper
    }

    /// Takes up to `count` sleepers that wait for one of `bitset`, oldest first, and marks them
    /// woken. The cheap grade takes all that sleep on the key.
    pub(super) fn take(&self, key: Key, count: u32, bitset: u32) -> Vec<Rc<Sleeper>> {
        let everybody = self.grade() == Grade::Cheap;
        let mut taken = Vec::new();
        self.queue.borrow_mut().retain(|sleeper| {
            let hit = sleeper.key.get() == key
                && (everybody || (sleeper.bitset & bitset != 0 && (taken.len() as u32) < count));
            if hit {
                sleeper.woken.set(true);
                taken.push(Rc::clone(sleeper));
            }
            !hit
        });
        taken
    }

    /// Moves up to `count` sleepers from one key to the end of another's queue, oldest first.
    /// Returns how many.
    pub(super) fn requeue(&self, from: Key, count: u32, to: Key) -> u32 {
        let mut moved = Vec::new();
        let mut queue = self.queue.borrow_mut();
        queue.retain(|sleeper| {
            let hit = sleeper.key.get() == from && (moved.len() as u32) < count;
            if hit {
                sleeper.key.set(to);
                moved.push(Rc::clone(sleeper));
            }
            !hit
        });
        let count = moved.len() as u32;
        queue.extend(moved);
        count
    }

    /// Whether a wait that could sleep ends at once as if spuriously woken.
    pub(super) fn draw_spurious(&self) -> bool {
        let nth = self.spurious_drawn.get();
        self.spurious_drawn.set(nth + 1);
        self.run.spurious_bit(nth)
    }

    /// Whether `deadline` has passed. Until it has, every look is a choice of the run; once it has,
    /// it stays so.
    pub(super) fn draw_expiry(&self, deadline: &Deadline) -> bool {
        if deadline.is_never() {
            return false;
        }
        if self.clocks.has_expired(deadline) {
            return true;
        }
        let nth = self.timeouts_drawn.get();
        self.timeouts_drawn.set(nth + 1);
        let expires = self.run.timeout_bit(nth);
        if expires {
            self.clocks.expire(deadline);
        }
        expires
    }

    pub(super) fn clocks(&self) -> &Clocks {
        &self.clocks
    }
}
