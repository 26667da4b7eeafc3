//! Clients of many operations for reader-writer locks.
//!
//! All of them use a table of a hundred variables that are equal whenever no thread writes: a
//! reader compares them all, a writer compares them and sets each to the next number. So one run
//! measures the lock's work and checks it: a reader beside a writer finds two numbers, and a writer
//! beside a writer loses one. It is the check of the module that tested the priority-sifting rwlock
//! (Desnoyers 2008).

pub mod crowd;
pub mod shared;
pub mod stress;

use super::stress::Random;
use crate::new_lock;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::raw::RawRwLock;
use ulocks_core::time::Deadline;

/// As in the module.
const VARIABLES: usize = 100;

/// A lock and what it protects.
pub(super) struct Table<L> {
    pub(super) lock: L,
    variables: UnsafeCell<[usize; VARIABLES]>,
    /// Accesses that found two numbers, or another than the same holder had seen before.
    torn: AtomicUsize,
    /// Accesses of writers.
    writes: AtomicUsize,
}

// SAFETY: `variables` is read by readers of `lock` and written by its writers. That the lock keeps
// these apart is what the tests are about; the accesses are volatile, so a broken lock yields wrong
// numbers.
unsafe impl<L: Sync> Sync for Table<L> {}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that got the lock, by thread.
    pub acquired: Vec<usize>,
    /// Accesses that wrote.
    pub writes: usize,
    /// What the variables say: `writes`, if writers exclude one another.
    pub counter: usize,
    /// Accesses that found two numbers, or another than the same holder had seen before: none, if
    /// writers exclude every thread and no thread lets go where one access turns into another.
    pub torn: usize,
    /// Signals that were handled.
    pub signals: usize,
}

impl Counts {
    fn new<L: RawRwLock>(table: &Table<L>, acquired: Vec<usize>, signals: usize) -> Self {
        assert!(!table.lock.is_locked(), "the lock is locked although everybody has left");
        Self {
            acquired,
            writes: table.writes.load(Relaxed),
            counter: table.look(0),
            torn: table.torn.load(Relaxed),
            signals,
        }
    }

    /// # Panics
    /// If a reader saw half a write or a write was lost, and unless there were reads and writes.
    pub fn check(&self) {
        assert_eq!(self.torn, 0, "somebody saw half a write: {self:?}");
        assert_eq!(self.counter, self.writes, "writes were lost: {self:?}");
        let all: usize = self.acquired.iter().sum();
        assert!(0 < self.writes && self.writes < all, "there were no writes, or nothing else: {self:?}");
    }
}

impl<L: RawRwLock> Table<L> {
    pub(super) fn new() -> Self {
        Self {
            lock: new_lock(),
            variables: UnsafeCell::new([0; VARIABLES]),
            torn: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
        }
    }

    /// What the variables say, after comparing them with `rounds` of nothing in the midst. The
    /// caller holds the lock.
    pub(super) fn look(&self, rounds: u32) -> usize {
        let variables = self.variables.get().cast::<usize>();
        // SAFETY: the pointers are into a live array; the caller holds the lock, so no thread
        // writes.
        let value = |nth| unsafe { variables.add(nth).read_volatile() };
        let first = value(0);
        let mut torn = false;
        for nth in 1..VARIABLES {
            if nth == VARIABLES / 2 {
                idle(rounds);
            }
            torn |= value(nth) != first;
        }
        self.torn.fetch_add(torn.into(), Relaxed);
        first
    }

    /// Looks once more: the holder has seen `value` and never let go. A difference is counted and
    /// not a panic, which would leave the others waiting.
    pub(super) fn expect_still(&self, value: usize, rounds: u32) {
        let differs = self.look(rounds) != value;
        self.torn.fetch_add(differs.into(), Relaxed);
    }

    /// Looks, and sets the variables to the next number. The caller holds the lock alone.
    pub(super) fn write(&self, rounds: u32) {
        let next = self.look(0) + 1;
        let variables = self.variables.get().cast::<usize>();
        for nth in 0..VARIABLES {
            if nth == VARIABLES / 2 {
                idle(rounds);
            }
            // SAFETY: the pointer is into a live array; the caller holds the lock alone.
            unsafe { variables.add(nth).write_volatile(next) };
        }
        self.writes.fetch_add(1, Relaxed);
    }

    fn look_and_unlock(&self, token: L::ReadToken, rounds: u32) {
        self.look(rounds);
        // SAFETY: the token is from the acquisition that the caller just made.
        unsafe { self.lock.unlock_read(token) };
    }

    fn write_and_unlock(&self, token: L::WriteToken, rounds: u32) {
        self.write(rounds);
        // SAFETY: the token is from the acquisition that the caller just made.
        unsafe { self.lock.unlock_write(token) };
    }

    /// Reads or writes once: three times in four reads, half of all without a deadline, a quarter
    /// with one from already passed to `longest` nanoseconds, a quarter if it needs no waiting.
    /// Whether the lock was had.
    fn read_or_write(&self, random: &mut Random, longest: u32, rounds: u32) -> bool {
        let lock = &self.lock;
        let way = random.below(4);
        if random.below(4) != 0 {
            let token = match way {
                0 => lock.try_read(),
                1 => within(random, longest, |deadline| lock.read_until(deadline)),
                _ => Some(lock.read()),
            };
            token.map(|token| self.look_and_unlock(token, rounds)).is_some()
        } else {
            let token = match way {
                0 => lock.try_write(),
                1 => within(random, longest, |deadline| lock.write_until(deadline)),
                _ => Some(lock.write()),
            };
            token.map(|token| self.write_and_unlock(token, rounds)).is_some()
        }
    }
}

fn idle(rounds: u32) {
    for _ in 0..rounds {
        std::hint::spin_loop();
    }
}

/// What `wait` gets before a deadline, from already passed to `longest` nanoseconds.
///
/// # Panics
/// If it gets nothing before that has passed.
fn within<T>(random: &mut Random, longest: u32, wait: impl FnOnce(Deadline) -> Option<T>) -> Option<T> {
    let deadline = soon(random, longest);
    let token = wait(deadline);
    assert!(token.is_some() || deadline.has_passed(), "a waiter left before its deadline");
    token
}

fn soon(random: &mut Random, longest: u32) -> Deadline {
    Deadline::after(Duration::from_nanos(random.below(longest).into()))
}
