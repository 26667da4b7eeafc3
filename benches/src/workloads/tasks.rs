//! Tasks of an executor, and threads beside them, that take turns at one lock.

use super::watched::GRACE;
use super::window::{self, MEASURE, STOP, WARM_UP};
use super::*;
use crate::run::busy_work::{Span, burn};
use crate::statistics;
use crate::statistics::random::Rng;
use crate::subjects::tasks::{Entry, TaskLock};
use anyhow::bail;
use crossbeam_utils::CachePadded;
use std::cell::UnsafeCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::task::Poll;
use std::thread;
use std::time::Instant;

/// What a lock is put through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Tasks that take turns.
    pub tasks: u32,
    /// Threads that do the same.
    pub threads: u32,
    /// Threads of the executor.
    pub workers: u32,
    /// Inside the lock, and outside.
    pub times: Times,
    /// Whether a task makes another future before each turn, polls it once, and drops it.
    pub cancels: bool,
}

impl Run {
    /// Threads that it starts.
    pub fn workers(self) -> u32 {
        self.workers + self.threads
    }

    /// Carries it out in this process.
    pub fn carry_out(self, subject: &str, conditions: &Conditions) -> Result<Outcome> {
        let (entry, count) = (Entry::find(subject)?, (self.tasks + self.threads) as usize);
        ensure!(
            count > 0 && self.workers > 0,
            "tasks without workers, or nobody at all; allowed: at least 1"
        );
        let span = |what, ns| Span::new(what, ns, conditions.iterations_per_us);
        let job = Arc::new(Job {
            run: self,
            hold: span("a time inside", self.times.hold_ns)?,
            think: span("a time outside", self.times.think_ns)?,
            seed: conditions.seed,
            phase: AtomicU32::new(WARM_UP),
            ended: AtomicUsize::new(0),
            turns: (0..count).map(|_| CachePadded::default()).collect(),
            inside: Inside(UnsafeCell::new(0)),
        });
        let lock = (entry.make)();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(self.workers as usize).build().context("no runtime of tokio")?;
        for index in 0..self.tasks as usize {
            runtime.spawn(lock.clone().task(job.clone(), index));
        }
        for index in self.tasks as usize..count {
            let (lock, job) = (lock.clone(), job.clone());
            thread::spawn(move || lock.thread(&job, index));
        }
        let counts = |of: fn(&Turns) -> &AtomicU64| -> Vec<u64> {
            job.turns.iter().map(|turns| of(turns).load(Acquire)).collect()
        };
        let (elapsed, cpu) = window::open(conditions, &job.phase);
        let end = Instant::now() + GRACE;
        while job.ended.load(Acquire) < count {
            if Instant::now() > end {
                let (left, grace) = (count - job.ended.load(Acquire), GRACE.as_secs_f64());
                bail!(
                    "'{}': {left} of {count} workers wait {grace:.1} s after the end: a wake-up was lost",
                    entry.name
                );
            }
            thread::sleep(Duration::from_micros(200));
        }
        runtime.shutdown_background();
        let (all, measured) = (counts(|turns| &turns.all), counts(|turns| &turns.measured));
        // SAFETY: all workers have ended.
        let (inside, all) = (unsafe { *job.inside.0.get() }, all.iter().sum::<u64>());
        ensure!(inside == all, "'{}': lost updates: {all} turns, but the number says {inside}", entry.name);
        let operations = measured.iter().sum::<u64>().max(1) as f64;
        let mut outcome = Outcome::from([
            ("rate".to_owned(), operations / elapsed.as_secs_f64()),
            ("cov".to_owned(), statistics::cov(&measured)),
        ]);
        window::cpu_figures(&mut outcome, cpu, Duration::ZERO, operations);
        Ok(outcome)
    }
}

/// What all workers share.
pub struct Job {
    run: Run,
    hold: Span,
    think: Span,
    seed: u64,
    phase: AtomicU32,
    ended: AtomicUsize,
    turns: Vec<CachePadded<Turns>>,
    inside: Inside,
}

/// The turns of a worker: all, and those in the window.
#[derive(Default)]
struct Turns {
    all: AtomicU64,
    measured: AtomicU64,
}

/// A number under the lock.
struct Inside(UnsafeCell<u64>);

// SAFETY: the number is accessed under the lock, and when all workers have ended; that the lock
// excludes is what the number tells.
unsafe impl Sync for Inside {}

impl Job {
    /// Inside the lock.
    fn add(&self, rng: &mut Rng) {
        // SAFETY: as for `Sync`.
        unsafe { *self.inside.0.get() += 1 };
        burn_for(self.hold, rng);
    }

    /// After a turn. Whether there is another.
    fn count(&self, index: usize, rng: &mut Rng) -> bool {
        burn_for(self.think, rng);
        let (turns, phase) = (&self.turns[index], self.phase.load(Relaxed));
        turns.all.store(turns.all.load(Relaxed) + 1, Relaxed);
        if phase == MEASURE {
            turns.measured.store(turns.measured.load(Relaxed) + 1, Relaxed);
        }
        phase != STOP
    }

    fn end(&self) {
        self.ended.fetch_add(1, Release);
    }
}

fn burn_for(span: Span, rng: &mut Rng) {
    if !span.is_zero() {
        burn(span.draw(rng));
    }
}

/// What a task does. Beside others it yields to the executor after each turn, as one that awaits
/// something else.
pub async fn go_round<L: TaskLock>(lock: &L, job: &Job, index: usize) {
    let mut rng = Rng::new(job.seed.wrapping_add(index as u64));
    let yields = job.run.tasks > 1;
    loop {
        if job.run.cancels {
            let polled = async {
                let mut other = pin!(lock.lock());
                std::future::poll_fn(|context| Poll::Ready(other.as_mut().poll(context).is_ready())).await
            };
            polled.await;
        }
        let guard = lock.lock().await;
        job.add(&mut rng);
        drop(guard);
        if !job.count(index, &mut rng) {
            return job.end();
        }
        if yields {
            tokio::task::yield_now().await;
        }
    }
}

/// What a thread does.
pub fn go_round_as_thread<L: TaskLock>(lock: &L, job: &Job, index: usize) {
    let mut rng = Rng::new(job.seed.wrapping_add(index as u64));
    loop {
        let guard = lock.lock_blocking();
        job.add(&mut rng);
        drop(guard);
        if !job.count(index, &mut rng) {
            return job.end();
        }
    }
}
