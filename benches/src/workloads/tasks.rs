//! Tasks of an executor, and threads beside them, that take turns at one lock.

use super::watched::GRACE;
use super::window::{self, WARM_UP};
use super::*;
use crate::run::busy_work::Span;
use crate::statistics;
use crate::subjects::tasks::{Entry, Job, Turns};
use anyhow::bail;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
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
        self.carry_out_on(Entry::find(subject)?, conditions, GRACE)
    }

    fn carry_out_on(self, entry: &Entry, conditions: &Conditions, grace: Duration) -> Result<Outcome> {
        let count = (self.tasks + self.threads) as usize;
        ensure!(
            count > 0 && self.workers > 0,
            "tasks without workers, or nobody at all; allowed: at least 1"
        );
        let span = |what, ns| Span::new(what, ns, conditions.iterations_per_us);
        let job = Arc::new(Job {
            yields: self.tasks > 1,
            cancels: self.cancels,
            hold: span("a time inside", self.times.hold_ns)?,
            think: span("a time outside", self.times.think_ns)?,
            seed: conditions.seed,
            phase: AtomicU32::new(WARM_UP),
            ended: AtomicUsize::new(0),
            turns: (0..count).map(|_| CachePadded::default()).collect(),
            inside: AtomicU64::new(0),
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
        let end = Instant::now() + grace;
        while job.ended.load(Acquire) < count {
            if Instant::now() > end {
                let (left, grace) = (count - job.ended.load(Acquire), grace.as_secs_f64());
                bail!(
                    "'{}': {left} of {count} workers wait {grace:.1} s after the end: a wake-up was lost",
                    entry.name
                );
            }
            thread::sleep(Duration::from_micros(200));
        }
        runtime.shutdown_background();
        let (all, measured) = (counts(|turns| &turns.all), counts(|turns| &turns.measured));
        let (inside, all) = (job.inside.load(Relaxed), all.iter().sum::<u64>());
        ensure!(
            inside == all || !entry.kind.excludes,
            "'{}': lost updates: {all} turns, but the number says {inside}",
            entry.name
        );
        let operations = measured.iter().sum::<u64>().max(1) as f64;
        let mut outcome = Outcome::from([
            ("rate".to_owned(), operations / elapsed.as_secs_f64()),
            ("cov".to_owned(), statistics::cov(&measured)),
        ]);
        window::cpu_figures(&mut outcome, cpu, Duration::ZERO, operations);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::tasks::{NoLock, TaskLock};
    use std::future::pending;

    const RUN: Run =
        Run { tasks: 4, threads: 0, workers: 2, times: Times { hold_ns: 0, think_ns: 0 }, cancels: false };

    fn conditions() -> Conditions {
        let pin = Pin::None;
        Conditions { warmup_ms: 5, window_ms: 50, iterations_per_us: 1_000.0, seed: 1, pin }
    }

    /// Never lets anybody in.
    struct Shut;

    impl TaskLock for Shut {
        type Guard<'a> = ();

        fn new() -> Self {
            Self
        }

        fn lock(&self) -> impl Future<Output = ()> + Send {
            pending()
        }

        fn lock_blocking(&self) -> impl Sized {}
    }

    fn error<L: TaskLock>(run: Run) -> String {
        let entry = crate::subjects::tasks::peer::<L>("wrong", "a wrong lock");
        run.carry_out_on(&entry, &conditions(), Duration::from_millis(200)).unwrap_err().to_string()
    }

    #[test]
    fn a_lock_that_loses_a_wake_up_is_an_error() {
        assert!(error::<Shut>(RUN).contains("4 of 4 workers wait 0.2 s after the end"));
        assert!(error::<NoLock>(Run { workers: 0, ..RUN }).contains("tasks without workers"));
    }

    #[test]
    fn each_lock_serves_tasks_and_threads() {
        for entry in Entry::all() {
            let is_plain = entry.name == crate::subjects::tasks::PLAIN;
            let run =
                if is_plain { Run { tasks: 1, ..RUN } } else { Run { threads: 1, cancels: true, ..RUN } };
            let seen = run.carry_out(entry.name, &conditions()).unwrap();
            assert!(seen["rate"] > 0.0, "{}", entry.name);
        }
    }
}
