//! A run of one condition variable, for a process of its own, and what comes back.

use super::loops;
use crate::run::pinning::{self, Pin};
use crate::statistics;
use crate::subjects::condvars;
use crate::workloads::Scenario;
use crate::workloads::figure::Figure;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// When a thread notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notify {
    /// While it holds the mutex.
    Under,
    /// After it has released the mutex.
    After,
}

impl Notify {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Under, Self::After];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Under => "under",
            Self::After => "after",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Under => "notify under the lock",
            Self::After => "notify after the lock",
        }
    }
}

/// On which CPUs the threads of a run run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Wherever the scheduler puts them, as in most programs.
    Free,
    /// In turn on different CPUs, as far apart as possible.
    Apart,
    /// All on one CPU.
    Together,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Free, Self::Apart, Self::Together];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Apart => "apart",
            Self::Together => "together",
        }
    }

    /// The CPUs that threads are dealt to in turn; none if they are not bound.
    pub(super) fn cpus(self) -> Result<Vec<usize>> {
        Ok(match self {
            Self::Free => Vec::new(),
            Self::Apart => pinning::order(Pin::Scatter)?,
            Self::Together => pinning::order(Pin::Scatter)?.into_iter().take(1).collect(),
        })
    }
}

/// What the threads of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// A bounded buffer: a number under a mutex.
    Buffer {
        /// Threads that put items in.
        producers: u32,
        /// Threads that take items out.
        consumers: u32,
        /// The most items that the buffer holds.
        capacity: u32,
        /// When these threads notify.
        notify: Notify,
        /// Whether both sides wait on one condition variable. Then each notification is for all
        /// waiters.
        one: bool,
    },
    /// Two threads that pass a turn to and fro.
    PingPong {
        /// When these threads notify.
        notify: Notify,
    },
    /// One thread notifies all of many, as soon as all of them wait.
    Crowd {
        /// The waiters.
        waiters: u32,
        /// When the last thread notifies.
        notify: Notify,
    },
    /// Waits that mostly time out: of [`PATIENCE`](Load::PATIENCE) each, and a notification each
    /// [`PAUSE`](Load::PAUSE).
    Timed {
        /// The waiters.
        waiters: u32,
    },
}

impl Load {
    /// How long a timed wait lasts.
    pub const PATIENCE: Duration = Duration::from_micros(100);
    /// The time between two notifications of the waiters that wait so.
    pub const PAUSE: Duration = Duration::from_millis(1);
}

/// What a condition variable is put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// What the threads do.
    pub load: Load,
    /// Where they run.
    pub place: Place,
}

impl Run {
    /// As `--only` knows it: `buffer/4+4/2/after`, `buffer/1+1/2/under/apart`,
    /// `buffer/4+4/2/after/one`.
    pub fn name(self) -> String {
        let load = match self.load {
            Load::Buffer { producers, consumers, capacity, notify, one } => {
                let one = if one { "/one" } else { "" };
                format!("buffer/{producers}+{consumers}/{capacity}/{}{one}", notify.name())
            }
            Load::PingPong { notify } => format!("ping-pong/{}", notify.name()),
            Load::Crowd { waiters, notify } => format!("notify-all/{waiters}/{}", notify.name()),
            Load::Timed { waiters } => format!("timed/{waiters}"),
        };
        match self.place {
            Place::Free => load,
            place => format!("{load}/{}", place.name()),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load {
            Load::Buffer { producers, consumers, capacity, notify, one } => {
                let one = if one { ", one condition variable" } else { "" };
                write!(f, "{producers}+{consumers}, capacity {capacity}, {}{one}", notify.words())?;
            }
            Load::PingPong { notify } => write!(f, "ping-pong, {}", notify.words())?,
            Load::Crowd { waiters, notify } => write!(f, "notify_all of {waiters}, {}", notify.words())?,
            Load::Timed { waiters } => write!(f, "{waiters} waits that mostly time out")?,
        }
        match self.place {
            Place::Free => Ok(()),
            Place::Apart => write!(f, ", on different CPUs"),
            Place::Together => write!(f, ", on one CPU"),
        }
    }
}

/// A run of one subject.
pub type Spec = crate::workloads::Spec<Run>;

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Length of the window as it really was, in seconds.
    pub elapsed_s: f64,
    /// CPU time of the whole process in the window, in seconds.
    pub cpu_s: f64,
    /// Context switches of the whole process in the window, voluntary and involuntary.
    pub switches: u64,
    /// Items taken out, turns, threads that came back from a wait.
    pub ops: u64,
    /// The same of each thread that is counted.
    pub counts: Vec<u64>,
}

impl Outcome {
    /// A figure of `promises`, if this run has it.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        // None at all count as one: less cannot be seen.
        let ops = self.ops.max(1) as f64;
        Some(match figure {
            Figure::PerSecond => ops / self.elapsed_s.max(1e-9),
            Figure::CpuPerOp => self.cpu_s * 1e9 / ops,
            Figure::SwitchesPerOp => self.switches.max(1) as f64 / ops,
            Figure::Cov => statistics::cov(&self.counts),
            _ => return None,
        })
    }
}

impl Scenario for Run {
    type Outcome = Outcome;

    fn threads(self) -> u32 {
        match self.load {
            Load::Buffer { producers, consumers, .. } => producers + consumers,
            Load::PingPong { .. } => 2,
            Load::Crowd { waiters, .. } | Load::Timed { waiters } => waiters + 1,
        }
    }

    fn carry_out(spec: &Spec) -> Result<Outcome> {
        loops::run(spec, condvars::Entry::find(&spec.subject)?)
    }
}
