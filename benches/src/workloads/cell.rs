//! What is run, and the figures that come of it.

use super::figure::Figure;
use super::handoff::{HandoffResult, HandoffSpec};
use super::hogs::{Hogs, HogsResult, Place};
use super::process_pairs::ProcessPairs;
use super::recovery::{Recovery, RecoveryResult};
use super::trial::{TrialResult, TrialSpec, Workers};
use super::uncontended::{Locks, PairsResult, PairsSpec};
use super::uncontended_sets::Sets;
use super::{Scenario, Spec};
use super::{Workload, condvars, readers, semaphores};
use crate::run::child::Task;
use crate::run::pinning::Pin;
use crate::statistics;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What locks are put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// The loop of 2002.
    Loop {
        /// Times inside and outside.
        workload: Workload,
        /// The contenders.
        workers: Workers,
        /// Whether the window lasts a second at least: fairness is about more than a time slice
        /// each.
        second: bool,
    },
    /// Hogs and victims.
    #[serde(rename = "duel")]
    Hogs(Hogs),
    /// A lock passed to and fro between two threads.
    Handoff,
    /// Lock and unlock, uncontended: all locks of this cell in one process.
    Pairs,
    /// The same, shared.
    ReadPairs,
    /// Lock and unlock, uncontended, of locks between processes: all in one process.
    ProcessPairs,
    /// A holder that is killed, and processes that sleep for its lock.
    Recovery(Recovery),
    /// The loop with readers.
    Shared {
        /// Times inside and outside.
        workload: Workload,
        /// The contenders.
        workers: Workers,
        /// Percentage of acquisitions that are shared.
        reads: u8,
    },
    /// A run of a reader-writer lock.
    Rw(readers::Run),
    /// A run of semaphores.
    Sem(semaphores::Run),
    /// A run of a condition variable.
    Condvar(condvars::Run),
    /// Sets of so many operations that no other thread stands in the way of, taken and given back:
    /// all subjects in one process.
    Sets(u32),
    /// Single operations on so many semaphores, one after the other, and then their opposites: all
    /// subjects in one process.
    Singles(u32),
}

impl Cell {
    /// Whether all locks of this cell run in one process.
    pub fn is_pairs(self) -> bool {
        matches!(self, Self::Pairs | Self::ReadPairs | Self::ProcessPairs | Self::Sets(_) | Self::Singles(_))
    }
}

/// A trial, for a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// [`Cell::Loop`].
    Loop(TrialSpec),
    /// [`Cell::Hogs`].
    #[serde(rename = "duel")]
    Hogs(Spec<Hogs>),
    /// [`Cell::Handoff`].
    Handoff(HandoffSpec),
    /// [`Cell::Pairs`] and [`Cell::ReadPairs`].
    Pairs(PairsSpec<Locks>),
    /// [`Cell::ProcessPairs`].
    ProcessPairs(PairsSpec<ProcessPairs>),
    /// [`Cell::Recovery`].
    Recovery(Spec<Recovery>),
    /// [`Cell::Rw`].
    Rw(Spec<readers::Run>),
    /// [`Cell::Sem`].
    Sem(Spec<semaphores::Run>),
    /// [`Cell::Condvar`].
    Condvar(Spec<condvars::Run>),
    /// [`Cell::Sets`].
    Sets(PairsSpec<Sets>),
}

/// What a [`Job`] comes to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Of the loop.
    Loop(TrialResult),
    /// Of hogs and victims.
    #[serde(rename = "duel")]
    Hogs(HogsResult),
    /// Of hand-overs.
    Handoff(HandoffResult),
    /// Of uncontended pairs, also of sets.
    Pairs(PairsResult),
    /// Of holders that were killed.
    Recovery(RecoveryResult),
    /// Of a run of a reader-writer lock.
    Rw(readers::Outcome),
    /// Of a run of semaphores.
    Sem(semaphores::Outcome),
    /// Of a run of a condition variable.
    Condvar(condvars::Outcome),
}

/// Asks the specification of a job.
macro_rules! each {
    ($job:expr, $ask:ident) => {
        match $job {
            Job::Loop(spec) => spec.$ask(),
            Job::Hogs(spec) => spec.$ask(),
            Job::Handoff(spec) => spec.$ask(),
            Job::Pairs(spec) => spec.$ask(),
            Job::ProcessPairs(spec) => spec.$ask(),
            Job::Recovery(spec) => spec.$ask(),
            Job::Rw(spec) => spec.$ask(),
            Job::Sem(spec) => spec.$ask(),
            Job::Condvar(spec) => spec.$ask(),
            Job::Sets(spec) => spec.$ask(),
        }
    };
}

impl Task for Job {
    type Answer = Answer;

    fn carry_out(&self) -> Result<Answer> {
        Ok(match self {
            Self::Loop(spec) => Answer::Loop(spec.carry_out()?),
            Self::Hogs(spec) => Answer::Hogs(spec.carry_out()?),
            Self::Handoff(spec) => Answer::Handoff(spec.carry_out()?),
            Self::Pairs(spec) => Answer::Pairs(spec.carry_out()?),
            Self::ProcessPairs(spec) => Answer::Pairs(spec.carry_out()?),
            Self::Recovery(spec) => Answer::Recovery(spec.carry_out()?),
            Self::Rw(spec) => Answer::Rw(spec.carry_out()?),
            Self::Sem(spec) => Answer::Sem(spec.carry_out()?),
            Self::Condvar(spec) => Answer::Condvar(spec.carry_out()?),
            Self::Sets(spec) => Answer::Pairs(spec.carry_out()?),
        })
    }

    fn own_time(&self) -> Duration {
        each!(self, own_time)
    }

    fn workers(&self) -> u32 {
        each!(self, workers)
    }
}

/// A trial of a round: one cell, one lock, or all locks of [pairs](Cell::is_pairs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What they are put through.
    pub cell: Cell,
    /// The locks.
    pub locks: Vec<String>,
}

/// A trial that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// From 0.
    pub round: u32,
    /// The locks that ran.
    pub locks: Vec<String>,
    /// What they were put through.
    pub cell: Cell,
    /// What came of it.
    pub answer: Answer,
}

/// How long things are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Window of a loop.
    pub window_ms: u64,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
}

/// Hogs and victims get longer windows: a starving victim must have time to starve.
const HOG_WINDOWS: u64 = 5;

impl Probe {
    /// Adds the trial of `lock` in `cell` to `probes`, unless it is there.
    pub fn add(probes: &mut Vec<Self>, cell: Cell, lock: &str) {
        let probe = Self { cell, locks: vec![lock.to_owned()] };
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    }

    /// The trial itself.
    pub fn job(&self, lengths: Lengths, seed: u64) -> Job {
        let Lengths { window_ms, iterations_per_us } = lengths;
        let warmup_ms = (window_ms / 4).clamp(2, 100);
        let (lock, subjects) = (self.locks.first().cloned().unwrap_or_default(), self.locks.clone());
        let contend = |lock, workload: Workload, workers, read_share, window_ms| {
            Job::Loop(TrialSpec {
                lock,
                workers,
                lock_count: 1,
                hold_ns: workload.hold_ns,
                non_hold_ns: workload.non_hold_ns,
                read_share,
                warmup_ms,
                window_ms,
                pin: Pin::Scatter,
                waits: false,
                iterations_per_us,
                seed,
            })
        };
        let brief_ms = window_ms / 2 + 1;
        match self.cell {
            Cell::Loop { workload, workers, second } => {
                contend(lock, workload, workers, 0, if second { window_ms.max(1000) } else { window_ms })
            }
            Cell::Shared { workload, workers, reads } => contend(lock, workload, workers, reads, window_ms),
            Cell::Rw(run) => {
                Job::Rw(Spec { subject: lock, run, warmup_ms, window_ms, iterations_per_us, seed })
            }
            Cell::Hogs(run) => {
                let longer = run.threads() > 2 || run.place == Place::Apart;
                let window_ms = window_ms * if longer { HOG_WINDOWS } else { 3 };
                Job::Hogs(Spec { subject: lock, run, warmup_ms, window_ms, iterations_per_us, seed })
            }
            Cell::Handoff => Job::Handoff(HandoffSpec { lock, window_ms: 2 * window_ms }),
            Cell::Pairs => Job::Pairs(pairs(subjects, Locks { reads: false }, brief_ms)),
            Cell::ReadPairs => Job::Pairs(pairs(subjects, Locks { reads: true }, brief_ms)),
            Cell::ProcessPairs => Job::ProcessPairs(pairs(subjects, ProcessPairs, brief_ms)),
            Cell::Recovery(run) => {
                Job::Recovery(Spec { subject: lock, run, warmup_ms: 0, window_ms, iterations_per_us, seed })
            }
            Cell::Sem(run) => {
                Job::Sem(Spec { subject: lock, run, warmup_ms, window_ms, iterations_per_us, seed })
            }
            Cell::Condvar(run) => {
                let warmup_ms = warmup_ms.min(window_ms.div_ceil(4));
                Job::Condvar(Spec { subject: lock, run, warmup_ms, window_ms, iterations_per_us, seed })
            }
            Cell::Sets(ops) => Job::Sets(pairs(subjects, Sets { ops, one_by_one: false }, brief_ms)),
            Cell::Singles(ops) => Job::Sets(pairs(subjects, Sets { ops, one_by_one: true }, brief_ms)),
        }
    }

    /// What a trial takes, in seconds, its process included. What it costs to create a worker, to
    /// give it its first turn and to reap it was measured on two cores.
    pub fn takes_s(&self, lengths: Lengths) -> f64 {
        let job = self.job(lengths, 0);
        let each = match self.cell {
            Cell::Loop { workers: Workers::Processes(_), .. } => 0.000_5,
            _ => 0.000_3,
        };
        job.own_time().as_secs_f64() + 0.020 + each * f64::from(job.workers())
    }
}

fn pairs<P>(subjects: Vec<String>, pairs: P, window_ms: u64) -> PairsSpec<P> {
    PairsSpec { subjects, pairs, window_ms }
}

impl Trial {
    /// The figure of `lock`, if this trial has it.
    pub fn figure(&self, lock: &str, figure: Figure) -> Option<f64> {
        let index = self.locks.iter().position(|name| name == lock)?;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>().max(1) as f64;
        Some(match (&self.answer, figure) {
            (Answer::Loop(result), Figure::PerSecond) => sum(&result.counts) / result.elapsed_s.max(1e-9),
            (Answer::Loop(result), Figure::Cov) => statistics::cov(&result.counts),
            (Answer::Loop(result), Figure::CpuPerOp) => result.cpu_s? * 1e9 / sum(&result.counts),
            (Answer::Loop(result), Figure::FutexesPerOp) => {
                result.futexes?.all().max(1) as f64 / sum(&result.counts)
            }
            (Answer::Hogs(result), Figure::HogsPerSecond) => sum(&result.hogs) / result.elapsed_s.max(1e-9),
            (Answer::Hogs(result), Figure::WorstWait) => result.waits.max.max(1) as f64,
            (Answer::Hogs(result), Figure::WaitP99) => result.waits.p99.max(1) as f64,
            (Answer::Hogs(result), Figure::WaitP50) => result.waits.p50.max(1) as f64,
            (Answer::Handoff(result), Figure::PerSecond) => result.per_s,
            (Answer::Pairs(result), Figure::PairNs) => *result.ns.get(index)?,
            (Answer::Recovery(result), Figure::Recovery) => {
                let ns: Vec<f64> = result.ns.iter().map(|&ns| ns as f64).collect();
                statistics::median(&ns)
            }
            (Answer::Recovery(result), Figure::SlowestRecovery) => *result.ns.iter().max()? as f64,
            (Answer::Rw(outcome), figure) => outcome.figure(figure)?,
            (Answer::Sem(outcome), figure) => outcome.figure(figure)?,
            (Answer::Condvar(outcome), figure) => outcome.figure(figure)?,
            _ => return None,
        })
    }
}
