//! What subjects are put through. Each workload is a [`Task`]: a
//! specification, carried out in a process of its own, and its outcome.

pub mod cell;
pub mod condvars;
pub mod figure;
pub mod handoff;
pub mod hogs;
pub mod process_pairs;
pub mod readers;
pub mod recovery;
pub mod semaphores;
pub mod trial;
pub mod uncontended;
pub mod uncontended_sets;
mod window;

use crate::run::child::Task;
use anyhow::{Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one subject is put through, for the length of a window.
pub trait Scenario: Copy + Serialize + DeserializeOwned {
    /// What comes back.
    type Outcome: Serialize + DeserializeOwned;

    /// How many threads it has.
    fn threads(self) -> u32;

    /// Carries it out in this process.
    fn carry_out(spec: &Spec<Self>) -> Result<Self::Outcome>;
}

/// A scenario with a subject, for a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec<S> {
    /// A name in the registry of subjects.
    pub subject: String,
    /// The scenario.
    pub run: S,
    /// Not counted, before the window.
    pub warmup_ms: u64,
    /// The measured window.
    pub window_ms: u64,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
    /// Of random numbers.
    pub seed: u64,
}

impl<S: Scenario> Task for Spec<S> {
    type Answer = S::Outcome;

    fn carry_out(&self) -> Result<S::Outcome> {
        ensure!(self.window_ms > 0, "a window of 0 ms measures nothing; allowed: at least 1 ms");
        S::carry_out(self)
    }

    fn own_time(&self) -> Duration {
        Duration::from_millis(self.warmup_ms + self.window_ms)
    }

    fn workers(&self) -> u32 {
        self.run.threads()
    }
}

/// Mean times inside and outside the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// Inside, in nanoseconds.
    pub hold_ns: u64,
    /// Outside, in nanoseconds.
    pub non_hold_ns: u64,
}

impl Workload {
    /// Short critical sections: 20 to 500 ns inside, with 20 to 500 ns outside.
    pub fn short() -> impl Iterator<Item = Self> {
        const OUTSIDE_NS: [u64; 3] = [20, 100, 500];
        let outside = |hold_ns| OUTSIDE_NS.map(|non_hold_ns| Self { hold_ns, non_hold_ns });
        [20, 50, 100, 200, 500].into_iter().flat_map(outside)
    }

    /// No time inside or outside: the loop is the lock and nothing else, and clock reads would be
    /// most of it.
    pub fn is_bare(self) -> bool {
        self.hold_ns == 0 && self.non_hold_ns == 0
    }
}
