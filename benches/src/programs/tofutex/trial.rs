//! One trial: all threads of one lock.

use crate::run::child::Task;
use crate::run::crew::Crew;
use crate::run::syscalls::{self, Calls, Counters};
use crate::run::threads::{time, usage};
use crate::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::cell::UnsafeCell;
use std::fmt;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// What a thread does while it holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// Adds one to a number.
    Short,
    /// Sleeps for a microsecond, which the kernel's timer slack makes some fifty.
    Sleep,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "a short section",
            Self::Sleep => "a section that sleeps for 1 us",
        })
    }
}

/// The description of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TofutexSpec {
    /// The lock's name in the registry.
    pub lock: String,
    /// What a thread does while it holds the lock.
    pub section: Section,
    /// How many threads.
    pub threads: u32,
    /// How often each locks.
    pub each: u64,
}

/// What a trial measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Seconds until the last thread was done.
    pub max_s: f64,
    /// Seconds until the first thread was done.
    pub min_s: f64,
    /// Seconds until a thread was done, in the mean.
    pub average_s: f64,
    /// CPU time in the kernel, of all threads.
    pub system_s: f64,
    /// CPU time outside of the kernel, of all threads.
    pub user_s: f64,
    /// Calls to the kernel by locks and unlocks; none if they cannot be counted.
    pub calls: Option<Calls>,
}

/// A number that only the holder of the lock touches.
struct Guarded(UnsafeCell<u64>);

// SAFETY: threads reach the number only while they hold the lock under test.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// # Safety
    /// The caller holds the lock under test.
    unsafe fn add_one(&self) {
        // SAFETY: by the caller's promise no other thread is here.
        unsafe { *self.0.get() += 1 };
    }
}

struct Run<'a>(&'a TofutexSpec);

impl Visitor for Run<'_> {
    type Output = Result<Times>;

    fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
        let spec = self.0;
        let locks = LockArray::<L>::new(Scope::Threads, 1)?;
        let lock = locks.get(0);
        let number = Guarded(UnsafeCell::new(0));
        let section = || {
            // SAFETY: `lock.with` runs this while it holds the lock.
            unsafe { number.add_one() };
            if spec.section == Section::Sleep {
                thread::sleep(Duration::from_micros(1));
            }
        };
        let before = cpu_times();
        let results = thread::scope(|scope| {
            let work = |_, counters: Counters| {
                let began = Instant::now();
                syscalls::count(&counters, || (0..spec.each).for_each(|_| lock.with(section)));
                (began, Instant::now(), counters.read())
            };
            let prepare = |_| Counters::default();
            Crew::start(scope, spec.threads as usize, |_| Builder::new(), prepare, work).map(Crew::join)
        })?;
        let (user, system) = cpu_times();
        let (wanted, found) = (spec.each * u64::from(spec.threads), number.0.into_inner());
        ensure!(found == wanted || !L::EXCLUDES, "{found} of {wanted} sections ran alone");
        let first = results.iter().map(|result| result.0).min().expect("at least one thread");
        let done: Vec<f64> = results.iter().map(|result| (result.1 - first).as_secs_f64()).collect();
        let calls = results.iter().fold(Calls::default(), |sum, result| sum.plus(result.2));
        Ok(Times {
            max_s: done.iter().copied().fold(0.0, f64::max),
            min_s: done.iter().copied().fold(f64::INFINITY, f64::min),
            average_s: crate::statistics::mean(&done),
            system_s: (system - before.1).as_secs_f64(),
            user_s: (user - before.0).as_secs_f64(),
            calls: (L::COUNTABLE && syscalls::countable()).then_some(calls),
        })
    }
}

/// CPU time of this process, outside and inside of the kernel.
fn cpu_times() -> (Duration, Duration) {
    let usage = usage(libc::RUSAGE_SELF);
    (time(usage.ru_utime), time(usage.ru_stime))
}

impl Task for TofutexSpec {
    type Answer = Times;

    fn carry_out(&self) -> Result<Times> {
        locks::visit(Entry::find(&self.lock)?, Scope::Threads, Run(self))?
    }

    /// At most 100 us for each operation: a sleep, and a hand-over between processors that idle.
    fn own_time(&self) -> Duration {
        Duration::from_micros(100 * self.each * u64::from(self.threads))
    }

    fn workers(&self) -> u32 {
        self.threads
    }
}
