//! Threads that do the same thing over and over, the window in which they are counted, and their
//! end.
//!
//! # Lost wake-ups
//! A condition variable that loses a wake-up leaves a thread asleep for ever, and perhaps all of
//! them. That must be an error and not a hang, so there are two looks at it, each with a time of
//! grace:
//!
//! 1. After the window the threads must still get on: each look at their counts must find more than
//!    the last.
//! 2. Then the run is closed: a flag is set under the mutex, and all are notified, once. All must
//!    end.
//!
//! Threads that sleep cannot be ended. They keep what they use alive, and end with the process of
//! the trial.

use super::Spec;
use crate::run::pinning;
use crate::run::threads::{Urgent, keep_a_thread_asleep, time, usage};
use crate::workloads::Scenario as _;
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// How long threads may take for what they should do at once.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// What a run consists of.
pub(super) trait Workload: Send + Sync + 'static {
    /// One turn of thread `index`; false if the run was closed before there was one.
    fn turn(&self, index: usize) -> bool;

    /// How many turns of all threads show that none of them waits in vain.
    fn enough(&self) -> u64;

    /// Closes the run: every thread ends, also one that waits.
    fn close(&self);

    /// Whether what is under the mutex agrees with so many turns of each thread.
    fn check(&self, turns: &[u64]) -> Result<()>;
}

/// What all threads share.
struct Shared<W> {
    work: W,
    counting: AtomicBool,
    laps: Vec<CachePadded<Laps>>,
    /// Threads that have ended.
    ended: AtomicU64,
}

/// Turns of a thread, on lines of their own: in the window, and from first to last.
#[derive(Default)]
struct Laps {
    counted: AtomicU64,
    all: AtomicU64,
}

/// Says that a thread has ended, also by a panic.
struct Ending<'a>(&'a AtomicU64);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Release);
    }
}

/// What came of a run.
pub(super) struct Counted {
    pub elapsed_s: f64,
    pub cpu_s: f64,
    pub switches: u64,
    /// Turns of each thread in the window.
    pub counts: Vec<u64>,
}

/// Runs `work` on as many threads as the run has.
pub(super) fn run<W: Workload>(spec: &Spec, work: W, grace: Duration) -> Result<Counted> {
    keep_a_thread_asleep();
    let threads = spec.run.threads() as usize;
    let cpus = spec.run.place.cpus()?;
    let laps = (0..threads).map(|_| CachePadded::default()).collect();
    let shared = Arc::new(Shared { work, counting: AtomicBool::new(false), laps, ended: AtomicU64::new(0) });
    let gate = Arc::new(Barrier::new(threads + 1));
    let start = |index: usize| {
        let (shared, gate) = (shared.clone(), gate.clone());
        let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
        let body = move || {
            let bound = cpu.map_or(Ok(()), pinning::bind);
            gate.wait();
            let _ending = Ending(&shared.ended);
            shared.go_round(index);
            bound
        };
        thread::Builder::new().stack_size(128 * 1024).spawn(body)
    };
    // All of them, or the gate never opens: a thread that cannot be had ends the process.
    let crew: Vec<_> = (0..threads).map(|index| start(index).expect("a thread can be had")).collect();
    gate.wait();
    let mut counted = shared.window(spec);
    shared.get_on(spec, grace)?;
    shared.end(spec, grace)?;
    for thread in crew {
        match thread.join() {
            Ok(bound) => bound?,
            Err(_) => bail!("'{}', {}: a thread panicked", spec.subject, spec.run),
        }
    }
    let turns: Vec<u64> = shared.laps.iter().map(|laps| laps.all.load(Relaxed)).collect();
    shared.work.check(&turns)?;
    counted.counts = shared.laps.iter().map(|laps| laps.counted.load(Relaxed)).collect();
    Ok(counted)
}

impl<W: Workload> Shared<W> {
    #[inline(never)]
    fn go_round(&self, index: usize) {
        let (laps, mut counted, mut all) = (&self.laps[index], 0, 0);
        while self.work.turn(index) {
            all += 1;
            laps.all.store(all, Relaxed);
            if self.counting.load(Relaxed) {
                counted += 1;
                laps.counted.store(counted, Relaxed);
            }
        }
    }

    /// Opens and closes the window.
    fn window(&self, spec: &Spec) -> Counted {
        let _urgent = Urgent::new();
        thread::sleep(Duration::from_millis(spec.warmup_ms));
        let (start, before) = (Instant::now(), used());
        self.counting.store(true, Relaxed);
        thread::sleep(Duration::from_millis(spec.window_ms));
        let (elapsed, after) = (start.elapsed(), used());
        self.counting.store(false, Relaxed);
        Counted {
            elapsed_s: elapsed.as_secs_f64(),
            cpu_s: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
            switches: after.switches.saturating_sub(before.switches),
            counts: Vec::new(),
        }
    }

    fn turns(&self) -> u64 {
        self.laps.iter().map(|laps| laps.all.load(Relaxed)).sum()
    }

    /// The first look.
    fn get_on(&self, spec: &Spec, grace: Duration) -> Result<()> {
        let enough = self.turns() + self.work.enough();
        let got_on = within(grace, || self.turns() >= enough || self.ended.load(Relaxed) > 0);
        ensure!(
            got_on,
            "'{}', {}: the threads did not get on for {:.1} s: a wake-up was lost",
            spec.subject,
            spec.run,
            grace.as_secs_f64()
        );
        Ok(())
    }

    /// The second look.
    fn end(&self, spec: &Spec, grace: Duration) -> Result<()> {
        self.work.close();
        let threads = self.laps.len() as u64;
        let ended = within(grace, || self.ended.load(Relaxed) == threads);
        ensure!(
            ended,
            "'{}', {}: {} of {threads} threads sleep on {:.1} s after all were notified: a wake-up was lost",
            spec.subject,
            spec.run,
            threads - self.ended.load(Relaxed),
            grace.as_secs_f64()
        );
        Ok(())
    }
}

/// Whether something became true in time.
fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    true
}

/// What the process has used.
struct Usage {
    cpu: Duration,
    switches: u64,
}

fn used() -> Usage {
    let usage = usage(libc::RUSAGE_SELF);
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
    }
}
