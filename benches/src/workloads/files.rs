//! The program of 2005: tasks in one directory, each of which creates, unlinks and closes a file of
//! its own over and over; or tasks that add one to a number.
//!
//! The files are a tree in memory: that of the kernel has locks of its own, which no program can
//! exchange. Tasks run wherever the scheduler likes.

use super::window::{self, MEASURE, STOP, WARM_UP};
use super::*;
use crate::run::clock::monotonic_ns;
use crate::subjects::locks::{Locks, Mutex, Scope, Type};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;

/// The program of 2005: tasks in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// How many tasks.
    pub tasks: u32,
    /// Whether a task creates, unlinks and closes files, instead of adding one to a number.
    pub files: bool,
}

/// What a file consists of, apart from its name.
type Inode = Box<[u64; 16]>;

/// What threads share.
struct Shared<'a> {
    lock: &'a dyn Mutex,
    phase: AtomicU32,
    /// Sections that ran, raised by a load and a store.
    entered: AtomicU64,
    /// Only the holder of the lock is here.
    directory: UnsafeCell<BTreeMap<String, Inode>>,
}

// SAFETY: threads reach the directory only while they hold the lock under test, so no two of them
// are there at once. All that it contains may move to another thread.
unsafe impl Sync for Shared<'_> {}

/// What a task has done in the window.
#[derive(Default)]
struct Tally {
    operations: u64,
    sum_ns: u64,
    /// Sum of the differences between the time of an operation and that of the one before.
    changes_ns: u64,
    /// From first to last.
    all: u64,
}

impl Files {
    /// Carries it out in this process.
    pub fn carry_out(self, name: &str, kind: Type, conditions: &Conditions) -> Result<Outcome> {
        ensure!(self.tasks > 0, "no task works; allowed: at least 1");
        ensure!(
            !self.files || kind.excludes,
            "lock '{name}' does not exclude, and files would be lost; allowed: locks that exclude"
        );
        let locks = Locks::of(kind, Scope::Threads, 1)?;
        let shared = Shared {
            lock: locks.get(0),
            phase: AtomicU32::new(WARM_UP),
            entered: AtomicU64::new(0),
            directory: UnsafeCell::default(),
        };
        let task = |index| shared.task(self.files, index);
        let open = || window::open(conditions, &shared.phase);
        let (tallies, (elapsed, cpu)) = window::together(self.tasks as usize, &[], &task, open)?;

        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
        let sections = if self.files { 2 } else { 1 };
        let (wanted, found) = (sections * sum(|tally| tally.all), shared.entered.into_inner());
        kind.check(name, wanted, found)?;
        let (operations, elapsed_s) = (sum(|tally| tally.operations) as f64, elapsed.as_secs_f64());
        let mut outcome = Outcome::new();
        if operations > 0.0 {
            outcome.insert("rate".into(), operations / elapsed_s);
            outcome.insert("op-cost".into(), sum(|tally| tally.sum_ns) as f64 / operations);
            outcome.insert("op-deviance".into(), sum(|tally| tally.changes_ns) as f64 / operations);
            window::cpu_figures(&mut outcome, cpu, Duration::ZERO, operations);
        }
        if outcome.contains_key("cpu") {
            let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
            outcome.insert("busy".into(), cpu.as_secs_f64() / (elapsed_s * cpus as f64));
        }
        Ok(outcome)
    }
}

impl Shared<'_> {
    fn count(&self) {
        self.entered.store(self.entered.load(Relaxed) + 1, Relaxed);
    }

    /// For locks that exclude.
    fn enter(&self, f: &mut dyn FnMut(&mut BTreeMap<String, Inode>)) {
        self.lock.with(&mut || {
            self.count();
            // SAFETY: the lock is held, it excludes, and `f` does not come back here.
            f(unsafe { &mut *self.directory.get() });
        });
    }

    fn task(&self, files: bool, index: usize) -> Result<Tally> {
        let (name, mut tally) = (format!("file-{index}"), Tally::default());
        let (mut began, mut before) = (monotonic_ns(), None);
        loop {
            if files {
                let (mut new, mut old) = (Some((name.clone(), Inode::default())), None);
                self.enter(&mut |files| old = new.take().and_then(|(name, inode)| files.insert(name, inode)));
                let mut file = None;
                self.enter(&mut |files| file = files.remove(&name));
                ensure!(old.is_none() && file.is_some(), "a file was lost: two tasks were in the directory");
                drop(black_box(file)); // The last reference goes outside of the lock.
            } else {
                self.lock.with(&mut || self.count());
            }
            tally.all += 1;
            let now = monotonic_ns();
            let took = now - began;
            match self.phase.load(Relaxed) {
                MEASURE => {
                    tally.operations += 1;
                    tally.sum_ns += took;
                    tally.changes_ns += before.map_or(0, |before| took.abs_diff(before));
                }
                STOP => return Ok(tally),
                _ => {}
            }
            (began, before) = (now, Some(took));
        }
    }
}
