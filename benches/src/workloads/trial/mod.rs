//! One trial: one lock, one workload, one number of workers, in this process.
//!
//! Workers start behind a barrier and run Franke's loop. Before the warm-up each of them has its
//! first turn, and where there are more of them than CPUs makes room for the next: a thousand
//! runnable threads would take a time slice each, seconds together, and until then there would be
//! fewer contenders than the trial says. The coordinator opens the window after the warm-up and
//! closes it; what is counted are the operations that *completed* in between, divided by the time
//! that really passed. The protected counter of each lock is raised by a load at the start of the
//! critical section and a store at its end: an operation lost by two holders at once shows in the
//! sum, and the trial is an error, not a result.
//!
//! Wait times cover every acquisition that ended in the window, however long before it began, and
//! for each worker the wait that was not over when the window closed, with the length it came
//! to. Otherwise a lock could hide its worst waits by not ending them.
//!
//! CPU time and context switches are each worker's own (`RUSAGE_THREAD` as it notices the window's
//! start and end), so the coordinator's are not among them. A worker that waits as the window opens
//! takes its first sample when it gets in: what it cost to wake up and to lose again is in none of
//! them. CPU time and [futex calls](crate::run::syscalls) are therefore also looked at from
//! outside, by the coordinator at both edges of the window, for all workers together.

pub(super) mod arena;
pub(super) mod children;
mod run;
mod worker;

pub use run::{run, run_lock};

use crate::run::child::Task;
use crate::run::pinning::Pin;
use crate::run::syscalls::Calls;
use crate::subjects::locks::Meters;
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workers {
    /// Threads of this process.
    Threads(u32),
    /// Forked processes over a mapped file.
    Processes(u32),
}

impl Workers {
    /// How many.
    pub fn count(self) -> u32 {
        match self {
            Self::Threads(n) | Self::Processes(n) => n,
        }
    }
}

/// What to run. The loop of every worker is Franke's: outside, lock, inside, unlock; both times
/// uniform in [0.5x, 1.5x] of their mean.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialSpec {
    /// A name in the registry of `locks`.
    pub lock: String,
    /// The contenders.
    pub workers: Workers,
    /// Lock instances; worker `i` uses lock `i % lock_count`.
    pub lock_count: u32,
    /// Mean time inside, in nanoseconds.
    pub hold_ns: u64,
    /// Mean time outside, in nanoseconds.
    pub non_hold_ns: u64,
    /// Percentage of acquisitions that are shared; locks without a shared mode accept 0 only.
    pub read_share: u8,
    /// Not counted, before the window.
    pub warmup_ms: u64,
    /// The measured window.
    pub window_ms: u64,
    /// Where workers run.
    pub pin: Pin,
    /// Whether each acquisition is timed (two clock reads an operation).
    pub waits: bool,
    /// Calibration of the busy work, passed on so that all trials of a run use one constant.
    pub iterations_per_us: f64,
    /// Seed of the workers' random numbers.
    pub seed: u64,
}

/// Wait times of acquisitions, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Waits {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Maximum.
    pub max: u64,
    /// Mean.
    pub mean: f64,
}

impl Waits {
    /// Of a histogram, with the exact sum and maximum of what it holds.
    pub(crate) fn of(histogram: &Histogram<u64>, sum: u64, max: u64) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile).min(max);
        Self {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max,
            mean: sum as f64 / histogram.len().max(1) as f64,
        }
    }
}

/// What a trial measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrialResult {
    /// Operations of each worker in the window.
    pub counts: Vec<u64>,
    /// Length of the window as it really was, in seconds.
    pub elapsed_s: f64,
    /// User CPU time of all workers in the window, in seconds.
    pub user_s: f64,
    /// System CPU time of all workers in the window, in seconds.
    pub system_s: f64,
    /// Voluntary context switches in the window: sleeps in the kernel.
    pub sleeps: u64,
    /// Involuntary context switches in the window.
    pub preemptions: u64,
    /// CPU time of all workers in the window as the coordinator saw it, in seconds.
    #[serde(default)]
    pub cpu_s: Option<f64>,
    /// Futex calls of all workers in the window, where they can be counted.
    #[serde(default)]
    pub futexes: Option<Calls>,
    /// Wait times, if asked for.
    pub waits: Option<Waits>,
    /// What the lock counted in the window, if it has a meter.
    pub meters: Option<Meters>,
    /// How fast the CPU did the busy work just before the trial, as a share of the calibration: 1
    /// is as calibrated.
    #[serde(default)]
    pub speed: f64,
}

impl Task for TrialSpec {
    type Answer = TrialResult;

    fn carry_out(&self) -> Result<TrialResult> {
        run(self)
    }

    fn own_time(&self) -> Duration {
        Duration::from_millis(self.warmup_ms + self.window_ms)
    }

    fn workers(&self) -> u32 {
        self.workers.count()
    }
}

#[cfg(test)]
mod tests;
