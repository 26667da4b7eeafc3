//! The three-state futex mutex and eight ways to get it wrong, each of which the model finds.
//!
//! The mutex is the one of Drepper's "Futexes Are Tricky" (2004), section 5: 0 free, 1 held, 2 held
//! and a thread may sleep.
#![cfg(world = "loom")]

use std::sync::Arc;

use ulocks_core::futex::{Futex, Local};
use ulocks_core::model::{self, Config, Grade};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::thread::with;

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// What the holder wrote is not ordered before its release.
    RelaxedUnlock,
    /// What the next holder reads is not ordered after its acquisition.
    RelaxedLock,
    /// The same, where it had to wait.
    RelaxedLockAfterWait,
    /// The release does not wake the sleeper.
    NoWake,
    /// The sleeper is woken before it can succeed, and sleeps again.
    WakeFirst,
    /// The sleeper waits for the wrong value.
    WaitOnOne,
    /// The release is a load and a store: a contender's mark between the two is lost.
    UnlockInTwoSteps,
    /// A woken thread acquires without the mark, and forgets the other sleepers.
    OneAfterWake,
}

struct Mutex {
    word: Futex<Local>,
    bug: Bug,
    data: UnsafeCell<u32>,
}

// SAFETY: the word admits one thread at a time to `data`, or the model says so.
unsafe impl Sync for Mutex {}

impl Mutex {
    fn new(bug: Bug) -> Self {
        Self { word: Futex::new(0), bug, data: UnsafeCell::new(0) }
    }

    fn lock(&self) {
        let order = if self.bug == Bug::RelaxedLock { Relaxed } else { Acquire };
        if self.word.compare_exchange(0, 1, order, Relaxed).is_ok() {
            return;
        }
        let order = match self.bug {
            Bug::RelaxedLock | Bug::RelaxedLockAfterWait => Relaxed,
            _ => Acquire,
        };
        if self.bug == Bug::OneAfterWake {
            while self.word.compare_exchange(0, 1, order, Relaxed).is_err() {
                let _ = self.word.compare_exchange(1, 2, Relaxed, Relaxed);
                self.word.wait(2, None);
            }
            return;
        }
        while self.word.swap(2, order) != 0 {
            self.word.wait(if self.bug == Bug::WaitOnOne { 1 } else { 2 }, None);
        }
    }

    fn unlock(&self) {
        let key = self.word.key();
        match self.bug {
            Bug::WakeFirst => {
                if self.word.load(Relaxed) == 2 {
                    key.wake(1);
                }
                self.word.swap(0, Release);
            }
            Bug::UnlockInTwoSteps => {
                let before = self.word.load(Relaxed);
                self.word.store(0, Release);
                if before == 2 {
                    key.wake(1);
                }
            }
            _ => {
                let order = if self.bug == Bug::RelaxedUnlock { Relaxed } else { Release };
                if self.word.swap(0, order) == 2 && self.bug != Bug::NoWake {
                    key.wake(1);
                }
            }
        }
    }
}

fn count(threads: usize, rounds: u32, bug: Bug) -> impl Fn() + Send + Sync + 'static {
    move || {
        let mutex = Arc::new(Mutex::new(bug));
        let work = move |mutex: &Mutex| {
            for _ in 0..rounds {
                mutex.lock();
                // SAFETY: the lock is held.
                mutex.data.with_mut(|data| unsafe { *data += 1 });
                mutex.unlock();
            }
        };
        let others: Vec<_> = (1..threads).map(|_| with(&mutex, move |mutex| work(mutex))).collect();
        work(&mutex);
        for other in others {
            other.join().unwrap();
        }
        mutex.lock();
        // SAFETY: the lock is held.
        assert_eq!(mutex.data.with(|data| unsafe { *data }), threads as u32 * rounds);
        mutex.unlock();
    }
}

#[test]
fn the_correct_mutex_passes() {
    model::explore(Config::unbounded(), count(2, 1, Bug::None));
    model::explore(Config::bounded(2), count(3, 1, Bug::None));
    model::explore(Config { spurious: 3, ..Config::bounded(1) }, count(3, 1, Bug::None));
    model::explore(Config { grade: Grade::Unordered, ..Config::bounded(1) }, count(3, 1, Bug::None));
}

#[test]
fn eight_bugs_are_found() {
    for (bug, says) in [
        (Bug::RelaxedUnlock, "Concurrent"),
        (Bug::RelaxedLock, "Concurrent"),
        (Bug::RelaxedLockAfterWait, "Concurrent"),
        (Bug::NoWake, "deadlock"),
        (Bug::WakeFirst, "deadlock"),
        (Bug::WaitOnOne, "maximum number of branches"),
        (Bug::UnlockInTwoSteps, "deadlock"),
    ] {
        model::finds_bug_saying(says, Config::bounded(2), count(2, 1, bug));
    }
    model::finds_bug_saying("deadlock", Config::bounded(2), count(3, 1, Bug::OneAfterWake));
}
