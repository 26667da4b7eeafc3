//! A run of some semaphores, for a process of its own, and what comes back.

use super::{loops, wakes};
use crate::statistics;
use crate::subjects::semaphores::{self, Entry, Made};
use crate::workloads::Scenario;
use crate::workloads::figure::Figure;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::fmt;
use ulocks_semarray::Fairness;

/// In which order workers that have been found ready are posted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they were found.
    Fifo,
    /// The last first.
    Lifo,
    /// Shuffled.
    Random,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fifo, Self::Lifo, Self::Random];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::Random => "random",
        }
    }
}

/// What semaphores are put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// Chris Mason's `sembench`: each waits for a semaphore of its own, and one posts to many at a
    /// time.
    Wakes {
        /// Threads that wait.
        threads: u32,
        /// The most that are posted to in a round.
        wakes: u32,
        /// In which order.
        order: Order,
    },
    /// Each takes and gives back a semaphore of its own, all in one array.
    Own {
        /// How many.
        threads: u32,
        /// Whether one more posts to many others of the array and takes that back, all the time.
        poster: bool,
    },
    /// Pairs that pass a turn to and fro: each posts to the other and waits for itself.
    PingPong {
        /// How many pairs.
        pairs: u32,
    },
    /// Each waits for a semaphore of its own to be zero and raises it, in one set, and lowers it
    /// again.
    Complex {
        /// How many.
        threads: u32,
    },
    /// A reader-writer lock made of two semaphores, as Perl's documentation has it: readers wait
    /// until there is no writer, writers until there is no thread.
    Readers {
        /// How many.
        threads: u32,
        /// Percentage of acquisitions that read.
        reads: u8,
    },
    /// Philosophers at a round table. Each takes both forks at once.
    Philosophers {
        /// How many.
        seats: u32,
    },
    /// Workers that each want one of two semaphores, and a manager that wants both.
    Manager {
        /// How many workers.
        workers: u32,
        /// How long each of them holds what it took, in microseconds.
        hold_us: u32,
    },
}

impl Run {
    /// As `--only` knows it.
    pub fn name(self) -> String {
        match self {
            Self::Wakes { threads, wakes, order } => format!("{threads}/{wakes}/{}", order.name()),
            Self::Own { threads, poster } => {
                format!("own/{threads}{}", if poster { "+poster" } else { "" })
            }
            Self::PingPong { pairs } => format!("pingpong/{pairs}"),
            Self::Complex { threads } => format!("complex/{threads}"),
            Self::Readers { threads, reads } => format!("readers/{threads}/{reads}%"),
            Self::Philosophers { seats } => format!("philosophers/{seats}"),
            Self::Manager { workers, hold_us } => format!("manager/{workers}/{hold_us}us"),
        }
    }

    /// Whether a subject can take part in it.
    pub fn admits(self, entry: &Entry) -> bool {
        let strict = matches!(entry.made_of, Made::Ours(Fairness::Strict { .. }));
        let takes_sets = matches!(entry.made_of, Made::Kernel | Made::Ours(_)) && !entry.one_by_one;
        match self {
            _ if entry.made_of == Made::Floor => false,
            Self::Wakes { .. } => !strict && entry.made_of != Made::Posix,
            Self::Own { .. } | Self::PingPong { .. } => entry.made_of == Made::Posix || takes_sets && !strict,
            Self::Manager { .. } => takes_sets,
            Self::Complex { .. } | Self::Readers { .. } | Self::Philosophers { .. } => takes_sets && !strict,
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Wakes { threads, wakes, order } => {
                write!(f, "{threads} threads, {wakes} wakes a round, {}", order.name())
            }
            Self::Own { threads, poster } => write!(
                f,
                "{threads} {} on {} own{}",
                if threads == 1 { "thread" } else { "threads" },
                if threads == 1 { "its" } else { "their" },
                if poster { ", and a poster of 64" } else { "" }
            ),
            Self::PingPong { pairs: 1 } => write!(f, "a pair that passes a turn"),
            Self::PingPong { pairs } => write!(f, "{pairs} pairs that pass a turn"),
            Self::Complex { threads } => write!(f, "{threads} x [wait 0, +1], then -1, no sleeping"),
            Self::Readers { threads, reads } => {
                write!(f, "{threads} threads, a reader-writer lock of sets, {reads} % reads")
            }
            Self::Philosophers { seats } => write!(f, "{seats} philosophers"),
            Self::Manager { workers, hold_us } => {
                write!(f, "{workers} workers and a manager, each holds {hold_us} us")
            }
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
    /// Operations in the window: posts, or turns of all threads that are looked at.
    pub ops: u64,
    /// Of each of these threads.
    pub counts: Vec<u64>,
    /// Of those beside them: the poster's sets, the manager's turns.
    pub beside: Vec<u64>,
    /// System calls of the poster, where they can be counted.
    pub calls: Option<u64>,
}

impl Outcome {
    /// A figure of `promises`, if this run has it.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let ops = self.ops.max(1) as f64;
        Some(match figure {
            Figure::PerSecond => ops / self.elapsed_s.max(1e-9),
            Figure::CpuPerOp => self.cpu_s * 1e9 / ops,
            Figure::CallsPerOp => self.calls?.max(1) as f64 / ops,
            Figure::Cov => statistics::cov(&self.counts),
            Figure::Share => {
                let mean = self.counts.iter().sum::<u64>().max(1) as f64 / self.counts.len().max(1) as f64;
                // None at all counts as one: less cannot be seen.
                *self.beside.first()?.max(&1) as f64 / mean
            }
            _ => return None,
        })
    }
}

impl Scenario for Run {
    type Outcome = Outcome;

    fn threads(self) -> u32 {
        match self {
            Self::Wakes { threads, .. } | Self::Complex { threads } | Self::Readers { threads, .. } => {
                threads
            }
            Self::Own { threads, poster } => threads + u32::from(poster),
            Self::PingPong { pairs } => 2 * pairs,
            Self::Philosophers { seats } => seats,
            Self::Manager { workers, .. } => workers + 1,
        }
    }

    fn carry_out(spec: &Spec) -> Result<Outcome> {
        let entry = semaphores::Entry::find(&spec.subject)?;
        ensure!(
            spec.run.admits(entry),
            "'{}' takes no part in a run of this kind, {}; allowed: {}",
            entry.name,
            spec.run.name(),
            semaphores::Entry::all()
                .iter()
                .filter(|e| spec.run.admits(e))
                .map(|e| e.name)
                .collect::<Vec<_>>()
                .join(", ")
        );
        match spec.run {
            Run::Wakes { .. } => wakes::run(spec, entry),
            _ => loops::run(spec, entry),
        }
    }
}
