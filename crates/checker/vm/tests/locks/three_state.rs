//! The three-state futex mutex of Drepper's "Futexes Are Tricky" (2003), with eight bugs.
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | `UNLOCKED` | free |
//! | `LOCKED` | held, no thread sleeps |
//! | `CONTENDED` | held, a thread may sleep: the release wakes one |
//!
//! # Invariants
//! 1. Only a transition out of `UNLOCKED` acquires.
//! 2. A thread that may have slept acquires as `CONTENDED`, since others may sleep still.
//! 3. No thread sleeps unless the word was `CONTENDED` at that moment.
//!
//! # Ordering
//! What acquires is Acquire and pairs with the Release of the swap in `unlock`. All are
//! read-modify-writes of one word.

use super::Exclusive;
use ulocks_vm::futex;
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// What is wrong with the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The release publishes nothing.
    RelaxedUnlock,
    /// No acquisition orders anything.
    RelaxedLock,
    /// An acquisition after waiting orders nothing.
    RelaxedSlowLock,
    /// The release wakes no thread.
    NoWake,
    /// The release wakes before it releases.
    WakeBeforeUnlock,
    /// A waiter wants to sleep on `LOCKED`, having written `CONTENDED`: it never sleeps and goes
    /// round and round.
    WaitOnOne,
    /// The release looks and then writes: a waiter that comes in between is not seen.
    LoadThenStore,
    /// A woken waiter acquires as `LOCKED`: it forgets the threads that sleep still (invariant 2).
    /// Takes three threads.
    OneAfterWakeUp,
}

pub struct ThreeState {
    word: AtomicU32,
    bug: Option<Bug>,
}

impl ThreeState {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { word: AtomicU32::new(UNLOCKED), bug }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn lock(&self) {
        let acquire = if self.has(Bug::RelaxedLock) { Relaxed } else { Acquire };
        if self.word.compare_exchange(UNLOCKED, LOCKED, acquire, Relaxed).is_ok() {
            return;
        }
        let acquire = if self.has(Bug::RelaxedSlowLock) { Relaxed } else { acquire };
        while self.word.swap(CONTENDED, acquire) != UNLOCKED {
            let expected = if self.has(Bug::WaitOnOne) { LOCKED } else { CONTENDED };
            futex::wait(&self.word, expected, u32::MAX, None, true);
            let forgets = self.has(Bug::OneAfterWakeUp);
            if forgets && self.word.compare_exchange(UNLOCKED, LOCKED, acquire, Relaxed).is_ok() {
                return;
            }
        }
    }

    fn unlock(&self) {
        let release = if self.has(Bug::RelaxedUnlock) { Relaxed } else { Release };
        if self.has(Bug::WakeBeforeUnlock) {
            if self.word.load(Relaxed) == CONTENDED {
                self.wake();
            }
            self.word.swap(UNLOCKED, release);
            return;
        }
        let before = if self.has(Bug::LoadThenStore) {
            let before = self.word.load(Relaxed);
            self.word.store(UNLOCKED, release);
            before
        } else {
            self.word.swap(UNLOCKED, release)
        };
        if before == CONTENDED && !self.has(Bug::NoWake) {
            self.wake();
        }
    }

    fn wake(&self) {
        futex::wake((&raw const self.word).addr(), 1, u32::MAX, true);
    }
}

impl Exclusive for ThreeState {
    fn hold(&self, _: usize, section: impl FnOnce()) {
        self.lock();
        section();
        self.unlock();
    }
}
