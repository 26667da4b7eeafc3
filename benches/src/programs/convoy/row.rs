//! A row of the table: a lock in a cell, now and then.

use super::seed::{self, Figures};
use super::{SEMAPHORE, SYSV, Subject};
use crate::programs::harness::Subject as _;
use crate::programs::harness::comparison::{Measured as Compared, Series, Side};
use crate::subjects::locks;
use crate::workloads::Workload;
use crate::workloads::cell::{Answer, Trial};
use crate::workloads::figure::Figure;
use serde::{Deserialize, Serialize};

/// A lock in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The lock.
    pub lock: String,
    /// As `--only` knows it.
    pub name: String,
    /// Times inside and outside.
    pub workload: Workload,
    /// Processes that contend.
    pub children: u32,
    /// What was measured; nothing if no round got so far.
    pub now: Option<Measured>,
    /// His row, if he has one.
    pub then: Option<Figures>,
    /// His throughput by that of SysV.
    pub then_by_sysv: Option<f64>,
    /// His throughput by that of usema.
    pub then_by_usema: Option<f64>,
}

/// What was measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Loops per second of all children.
    pub per_s: Side,
    /// That by SysV's of the same round.
    pub by_sysv: Option<Compared>,
    /// That by the semaphore's of the same round.
    pub by_semaphore: Option<Compared>,
    /// Contended acquisitions, percent, if the lock can count.
    pub contended: Option<f64>,
    /// Entries into the kernel to sleep per contended acquisition, if the lock can count.
    pub reentries: Option<f64>,
    /// Coefficient of variation of the children's loops, median over rounds.
    pub cov: f64,
    /// CPU time of a loop of all children, nanoseconds, median over rounds.
    pub cpu_ns: Option<f64>,
}

impl Row {
    /// Sums up the trials there are.
    pub(super) fn new(subject: &Subject, trials: &[Trial]) -> Self {
        let &Subject { lock, workload, children } = subject;
        Self {
            lock: lock.name.to_owned(),
            name: subject.name(),
            workload,
            children,
            now: now(subject, trials),
            then: seed::find(lock.then, workload, children).copied(),
            then_by_sysv: seed::ratio(lock.then, seed::SYSV, workload, children),
            then_by_usema: seed::ratio(lock.then, seed::USEMA, workload, children),
        }
    }
}

fn now(subject: &Subject, trials: &[Trial]) -> Option<Measured> {
    let cell = subject.cell();
    let series = |lock, figure| Series::new(trials, lock, cell, figure);
    let rate = series(subject.lock.name, Figure::PerSecond);
    if rate.is_empty() {
        return None;
    }
    let by = |peer: &str| match peer == subject.lock.name {
        true => None,
        false => rate.by(&Series::new(trials, peer, cell, Figure::PerSecond)),
    };
    let median = |figure| series(subject.lock.name, figure).measured().map(|measured| measured.value);
    let twin = locks::Entry::find(subject.lock.name).ok().and_then(|entry| entry.metered_twin());
    let counting = subject.counting_cell();
    let counted = twin.and_then(|twin| trials.iter().find(|t| t.cell == counting && t.locks == [twin.name]));
    let meters = counted.and_then(|trial| match &trial.answer {
        Answer::Loop(result) => result.meters,
        _ => None,
    });
    Some(Measured {
        per_s: rate.side(),
        by_sysv: by(SYSV),
        by_semaphore: by(SEMAPHORE),
        contended: meters.and_then(|meters| meters.write_contention(0)),
        reentries: meters.map(|meters| meters.reentries()),
        cov: median(Figure::Cov).unwrap_or(0.0),
        cpu_ns: median(Figure::CpuPerOp),
    })
}
