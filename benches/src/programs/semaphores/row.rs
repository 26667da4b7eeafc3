//! What the trials of some semaphores in a run come to.

use super::Subject;
use crate::programs::harness::Subject as _;
use crate::programs::harness::comparison::{Measured, Series, Side};
use crate::statistics;
use crate::subjects::semaphores::{FUTEX, KERNEL, POSIX};
use crate::workloads::cell::{Answer, Cell, Trial};
use crate::workloads::figure::Figure;
use crate::workloads::semaphores::{Order, Run};
use serde::{Deserialize, Serialize};

/// Some semaphores in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Their name.
    pub subject: String,
    /// The run.
    pub run: Run,
    /// As `--only` knows it.
    pub name: String,
    /// Posts, or turns of all threads that are looked at, a second.
    pub per_s: Side,
    /// That by the same of others in the same round.
    pub by: Vec<Measured>,
    /// That by the same in the order in which they were found.
    pub by_fifo: Option<Measured>,
    /// CPU time of the process for one of them, nanoseconds, median over rounds.
    pub cpu_ns: f64,
    /// System calls of the poster, for one of them, median over rounds, where they can be
    /// counted.
    pub calls: Option<f64>,
    /// Coefficient of variation of the threads', median over rounds.
    pub cov: f64,
    /// Turns a second of the one beside the others: sets of the poster, turns of the manager;
    /// median over rounds.
    pub beside_per_s: Option<f64>,
    /// Turns of the manager by the mean of the workers'.
    pub share: Option<Measured>,
}

/// Those that ratios are taken to.
pub(super) fn peers(run: Run) -> &'static [&'static str] {
    match run {
        Run::Wakes { .. } => &[KERNEL, FUTEX],
        Run::Own { .. } | Run::PingPong { .. } => &[KERNEL, POSIX],
        _ => &[KERNEL],
    }
}

/// The same run in the order in which they were found, if it is in another.
pub(super) fn fifo(run: Run) -> Option<Run> {
    match run {
        Run::Wakes { order: Order::Fifo, .. } => None,
        Run::Wakes { threads, wakes, .. } => Some(Run::Wakes { threads, wakes, order: Order::Fifo }),
        _ => None,
    }
}

impl Row {
    /// Sums up the trials there are; nothing if there are none.
    pub(super) fn new(subject: &Subject, trials: &[Trial]) -> Option<Self> {
        let &Subject { entry, run } = subject;
        let cell = Cell::Sem(run);
        let series = |figure| Series::new(trials, entry.name, cell, figure);
        let rate = series(Figure::PerSecond);
        if rate.is_empty() {
            return None;
        }
        let by = |peer: &&str| rate.by(&Series::new(trials, peer, cell, Figure::PerSecond));
        let in_fifo = |run| Series::new(trials, entry.name, Cell::Sem(run), Figure::PerSecond);
        let median = |figure| series(figure).measured().map(|measured| measured.value);
        let beside: Vec<f64> =
            trials.iter().filter_map(|trial| beside_per_s(entry.name, cell, trial)).collect();
        Some(Self {
            subject: entry.name.to_owned(),
            run,
            name: subject.name(),
            per_s: rate.side(),
            by: peers(run).iter().filter(|&&peer| peer != entry.name).filter_map(by).collect(),
            by_fifo: fifo(run).and_then(|run| rate.by(&in_fifo(run))),
            cpu_ns: median(Figure::CpuPerOp)?,
            calls: median(Figure::CallsPerOp),
            cov: median(Figure::Cov)?,
            beside_per_s: (!beside.is_empty()).then(|| statistics::median(&beside)),
            share: matches!(run, Run::Manager { .. }).then(|| series(Figure::Share).measured()).flatten(),
        })
    }

    /// Its ratio to `peer`.
    pub(in crate::programs) fn by(&self, peer: &str) -> Option<&Measured> {
        self.by.iter().find(|by| by.other.as_ref().is_some_and(|other| other.lock == peer))
    }
}

fn beside_per_s(name: &str, cell: Cell, trial: &Trial) -> Option<f64> {
    match &trial.answer {
        Answer::Sem(outcome) if trial.cell == cell && trial.locks == [name] => {
            Some(*outcome.beside.first()? as f64 / outcome.elapsed_s.max(1e-9))
        }
        _ => None,
    }
}

/// A ratio and its interval, or nothing.
pub(super) fn ratio(measured: Option<&Measured>) -> String {
    measured.map_or("-".into(), Measured::ratio)
}

/// A figure, or nothing.
pub(super) fn known(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or("-".into(), show)
}
