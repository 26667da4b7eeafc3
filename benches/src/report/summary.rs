//! From trials to figures.
//!
//! Throughputs, ratios and their intervals are those of [`statistics::rounds`]. Waits, fairness,
//! CPU time and sleeps are medians over rounds. The maximum wait is the longest of all rounds.
//!
//! A verdict needs an interval that excludes 1. With many cells one in twenty such verdicts is
//! wrong by chance; the score over all cells of a lock is the figure to quote.

use super::{Cell, Kind, Report, STD, Trial};
use crate::statistics;
use crate::statistics::rounds::{
    Estimate, Level, Ratio, Spread, Verdict, log_t, mean_ratio, modes, range_ratio,
};
use crate::workloads::Workload;
use crate::workloads::trial::{TrialResult, Waits};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Waits of a point, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitSummary {
    /// Median wait.
    pub p50: Spread,
    /// 99th percentile.
    pub p99: Spread,
    /// 99.9th percentile.
    pub p999: Spread,
    /// Longest wait of all rounds.
    pub max: f64,
}

/// One lock under one workload with one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The lock.
    pub lock: String,
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// Threads.
    pub threads: u32,
    /// Rounds.
    pub rounds: usize,
    /// Operations per second, round by round.
    #[serde(default)]
    pub rates: Vec<f64>,
    /// Operations per second: geometric mean and t interval.
    pub per_s: Estimate,
    /// Slower and faster mode, if there are two; then `per_s` is not to be shown.
    pub modes: Option<(Level, Level)>,
    /// To `std`.
    pub vs_std: Option<Ratio>,
    /// To parking_lot.
    pub vs_parking_lot: Option<Ratio>,
    /// Standard deviation over mean of the threads' operations.
    pub cov: Spread,
    /// Operations of the least served thread, as a part of the mean.
    pub least: Spread,
    /// Operations of the best served thread, as a multiple of the mean.
    pub most: Spread,
    /// Waits, if timed.
    pub waits: Option<WaitSummary>,
    /// CPU time per operation in nanoseconds, work inside and outside included.
    pub cpu_ns: Spread,
    /// CPU time per operation to that of `std`: less is better.
    pub cpu_vs_std: Option<Ratio>,
    /// Voluntary context switches per operation.
    pub sleeps: Spread,
}

impl Point {
    /// Throughput as one number for sorting and for axes: the mean, or the mode of most rounds.
    pub fn typical(&self) -> f64 {
        match self.modes {
            Some((slow, fast)) if fast.rounds > slow.rounds => fast.per_s,
            Some((slow, _)) => slow.per_s,
            None => self.per_s.value,
        }
    }
}

/// Verdicts counted over cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Cells where the lock is faster.
    pub faster: usize,
    /// Cells where it is slower.
    pub slower: usize,
    /// Cells that allow no verdict.
    pub none: usize,
}

/// A lock over all contended cells (two threads and more).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The lock.
    pub lock: String,
    /// To `std`, one thread, nothing inside or outside.
    pub uncontended: Option<Ratio>,
    /// To `std`, geometric mean over cells.
    pub vs_std: Option<Ratio>,
    /// To parking_lot, geometric mean over cells.
    pub vs_parking_lot: Option<Ratio>,
    /// CPU time per operation to that of `std`, geometric mean over cells: less is better.
    pub cpu_vs_std: Option<Ratio>,
    /// Cell by cell against `std`.
    pub tally: Tally,
    /// Geometric mean of the ratio to the best peer of each cell.
    pub vs_best: Option<f64>,
    /// The worst such ratio, where and against which lock.
    pub worst: Option<Worst>,
    /// Greatest median COV.
    pub max_cov: f64,
    /// Greatest median p99.9 wait in nanoseconds.
    pub max_p999: Option<f64>,
    /// Contended cells with two modes.
    pub two_modes: usize,
}

/// Where a lock compares worst with the best peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Throughput over that of the peer.
    pub ratio: f64,
    /// The peer.
    pub peer: String,
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// Threads.
    pub threads: u32,
}

/// All figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// By workload, threads, lock, in the order of the record.
    pub points: Vec<Point>,
    /// By lock, in the order of the record.
    pub scores: Vec<Score>,
    /// How much of the CPUs they could use the threads got when no lock made them wait; the rest
    /// went to another reader.
    #[serde(default)]
    pub cpu_share: Option<f64>,
}

impl Summary {
    /// The point of a lock, if it was measured.
    pub fn point(&self, lock: &str, workload: Workload, threads: u32) -> Option<&Point> {
        self.points.iter().find(|p| p.lock == lock && p.workload == workload && p.threads == threads)
    }
}

/// A figure of each (lock, cell) by round.
pub(super) type Rates<'a> = HashMap<(&'a str, usize), Vec<(u32, f64)>>;

/// Computes all figures from the trials of a record; its `summary` is not looked at, unless it is
/// all that was kept.
pub fn summarise(report: &Report) -> Summary {
    if report.trials.is_empty() {
        return report.summary.clone();
    }
    let rates = by_round(report, throughput);
    let cpu = by_round(report, cpu_ns);
    let mut points = Vec::new();
    for (index, cell) in report.cells.iter().enumerate().filter(|(_, c)| c.is_main()) {
        for lock in &report.locks {
            points.extend(point(report, &rates, &cpu, &lock.name, index, *cell));
        }
    }
    let scores = report.locks.iter().map(|l| score(report, &rates, &cpu, &points, &l.name)).collect();
    Summary { points, scores, cpu_share: cpu_share(report) }
}

fn cpu_share(report: &Report) -> Option<f64> {
    let free = report.trials.iter().filter(|t| report.kind(&t.lock) == Kind::Baseline);
    let shares: Vec<f64> = free
        .map(|t| {
            let cpus = report.cells[t.cell].threads.min(report.cpus());
            (t.result.user_s + t.result.system_s) / (t.result.elapsed_s * f64::from(cpus))
        })
        .collect();
    (!shares.is_empty()).then(|| statistics::median(&shares))
}

/// The throughput of each (lock, main cell) by round.
pub(super) fn rates(report: &Report) -> Rates<'_> {
    let place = |point: &Point| {
        let is =
            |cell: &Cell| cell.is_main() && cell.workload == point.workload && cell.threads == point.threads;
        report.cells.iter().position(is)
    };
    let numbered = |point: &Point| (0..).zip(point.rates.iter().copied()).collect();
    let points = report.summary.points.iter();
    points.filter_map(|point| Some(((point.lock.as_str(), place(point)?), numbered(point)))).collect()
}

fn by_round(report: &Report, figure: fn(&Trial) -> f64) -> Rates<'_> {
    let mut rates: Rates = HashMap::new();
    for trial in &report.trials {
        rates.entry((&trial.lock, trial.cell)).or_default().push((trial.round, figure(trial)));
    }
    rates
}

/// Operations per second; a trial without any counts as one, so that logarithms exist.
fn throughput(trial: &Trial) -> f64 {
    operations(&trial.result) / trial.result.elapsed_s.max(1e-9)
}

/// CPU time per operation; never zero, for the same reason.
fn cpu_ns(trial: &Trial) -> f64 {
    ((trial.result.user_s + trial.result.system_s) * 1e9).max(1.0) / operations(&trial.result)
}

fn operations(result: &TrialResult) -> f64 {
    result.counts.iter().sum::<u64>().max(1) as f64
}

fn point(report: &Report, rates: &Rates, cpu: &Rates, lock: &str, index: usize, cell: Cell) -> Option<Point> {
    let per_round = rates.get(&(lock, index))?;
    let values: Vec<f64> = per_round.iter().map(|&(_, v)| v).collect();
    let results: Vec<_> =
        report.trials.iter().filter(|t| t.cell == index && t.lock == lock).map(|t| &t.result).collect();
    let timed = report.cells.iter().position(|c| *c == Cell { timed: true, ..cell })?;
    let waits: Vec<_> = report
        .trials
        .iter()
        .filter(|t| t.cell == timed && t.lock == lock)
        .filter_map(|t| t.result.waits)
        .collect();
    let spread =
        |of: &dyn Fn(&TrialResult) -> f64| Spread::of(&results.iter().map(|&r| of(r)).collect::<Vec<_>>());
    let wait =
        |of: &dyn Fn(&Waits) -> u64| Spread::of(&waits.iter().map(|w| of(w) as f64).collect::<Vec<_>>());
    Some(Point {
        lock: lock.into(),
        workload: cell.workload,
        threads: cell.threads,
        rounds: values.len(),
        rates: values.clone(),
        per_s: log_t(&values),
        modes: modes(&values),
        vs_std: ratio(rates, lock, STD, index),
        vs_parking_lot: ratio(rates, lock, super::PARKING_LOT, index),
        cov: spread(&|r| statistics::cov(&r.counts)),
        least: spread(&|r| statistics::shares(&r.counts).0),
        most: spread(&|r| statistics::shares(&r.counts).1),
        waits: (!waits.is_empty()).then(|| WaitSummary {
            p50: wait(&|w| w.p50),
            p99: wait(&|w| w.p99),
            p999: wait(&|w| w.p999),
            max: waits.iter().map(|w| w.max).max().unwrap_or(0) as f64,
        }),
        cpu_ns: Spread::of(&cpu.get(&(lock, index))?.iter().map(|&(_, v)| v).collect::<Vec<_>>()),
        cpu_vs_std: paired(cpu, lock, STD, index),
        sleeps: spread(&|r| r.sleeps as f64 / operations(r)),
    })
}

/// Main cells of the locks whose throughput is not yet known to the given precision. Two modes
/// count as known: more rounds do not turn them into one.
pub fn open_cells(report: &Report) -> usize {
    let rates = by_round(report, throughput);
    let main = |&(_, cell): &(&str, usize)| report.cells[cell].is_main();
    let open = |values: &Vec<(u32, f64)>| {
        let values: Vec<f64> = values.iter().map(|&(_, rate)| rate).collect();
        let width = statistics::geometric_mean_interval(&values).relative_half_width();
        !statistics::bimodal(&values) && (width.is_nan() || width > report.options.precision)
    };
    rates.iter().filter(|(key, values)| main(key) && open(values)).count()
}

/// Pairs two locks by round; None if one of them never ran in this cell.
fn pair(rates: &Rates, lock: &str, peer: &str, cell: usize) -> Vec<(u32, f64)> {
    let (Some(a), Some(b)) = (rates.get(&(lock, cell)), rates.get(&(peer, cell))) else { return Vec::new() };
    let peers: HashMap<u32, f64> = b.iter().copied().collect();
    a.iter().filter_map(|&(round, rate)| Some((round, rate / peers.get(&round)?))).collect()
}

fn ratio(rates: &Rates, lock: &str, peer: &str, cell: usize) -> Option<Ratio> {
    if lock == peer {
        return None;
    }
    let values: Vec<f64> = pair(rates, lock, peer, cell).into_iter().map(|(_, v)| v).collect();
    let two_modes = [lock, peer].iter().any(|l| {
        rates
            .get(&(*l, cell))
            .is_some_and(|v| statistics::bimodal(&v.iter().map(|r| r.1).collect::<Vec<_>>()))
    });
    if two_modes { range_ratio(&values) } else { mean_ratio(&values) }
}

/// A ratio of figures that are not asked for modes.
fn paired(rates: &Rates, lock: &str, peer: &str, cell: usize) -> Option<Ratio> {
    if lock == peer {
        return None;
    }
    mean_ratio(&pair(rates, lock, peer, cell).into_iter().map(|(_, v)| v).collect::<Vec<_>>())
}

fn score(report: &Report, rates: &Rates, cpu: &Rates, points: &[Point], lock: &str) -> Score {
    let contended: Vec<usize> = (0..report.cells.len())
        .filter(|&i| report.cells[i].is_main() && report.cells[i].threads > 1)
        .collect();
    let mine: Vec<&Point> = points.iter().filter(|p| p.lock == lock && p.threads > 1).collect();
    let mut tally = Tally::default();
    for ratio in mine.iter().filter_map(|p| p.vs_std) {
        match ratio.verdict() {
            Verdict::Faster => tally.faster += 1,
            Verdict::Slower => tally.slower += 1,
            Verdict::None | Verdict::TwoModes => tally.none += 1,
        }
    }
    let against_best: Vec<Worst> = contended
        .iter()
        .filter_map(|&i| {
            let cell = report.cells[i];
            let peer = points
                .iter()
                .filter(|p| p.workload == cell.workload && p.threads == cell.threads)
                .filter(|p| report.kind(&p.lock) == Kind::Peer)
                .max_by(|a, b| a.typical().total_cmp(&b.typical()))?;
            let ratio = if peer.lock == lock { 1.0 } else { ratio(rates, lock, &peer.lock, i)?.value };
            Some(Worst { ratio, peer: peer.lock.clone(), workload: cell.workload, threads: cell.threads })
        })
        .collect();
    let bare = report.cells.iter().position(|c| c.is_main() && c.threads == 1 && c.workload.is_bare());
    Score {
        lock: lock.into(),
        uncontended: bare.and_then(|i| ratio(rates, lock, STD, i)),
        vs_std: over_cells(rates, lock, STD, &contended),
        vs_parking_lot: over_cells(rates, lock, super::PARKING_LOT, &contended),
        cpu_vs_std: over_cells(cpu, lock, STD, &contended),
        tally,
        vs_best: (!against_best.is_empty()).then(|| {
            (against_best.iter().map(|w| w.ratio.ln()).sum::<f64>() / against_best.len() as f64).exp()
        }),
        worst: against_best.into_iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)),
        max_cov: mine.iter().map(|p| p.cov.median).fold(0.0, f64::max),
        max_p999: mine.iter().filter_map(|p| p.waits).map(|w| w.p999.median).max_by(f64::total_cmp),
        two_modes: mine.iter().filter(|p| p.modes.is_some()).count(),
    }
}

/// One ratio a round, the geometric mean over cells, and then over the rounds that have all cells.
pub(super) fn over_cells(rates: &Rates, lock: &str, peer: &str, cells: &[usize]) -> Option<Ratio> {
    if lock == peer {
        return None;
    }
    let mut by_round: HashMap<u32, (f64, usize)> = HashMap::new();
    for &cell in cells {
        for (round, ratio) in pair(rates, lock, peer, cell) {
            let entry = by_round.entry(round).or_default();
            *entry = (entry.0 + ratio.ln(), entry.1 + 1);
        }
    }
    let mut whole: Vec<(u32, f64)> = by_round
        .into_iter()
        .filter(|(_, (_, n))| *n == cells.len())
        .map(|(round, (sum, n))| (round, (sum / n as f64).exp()))
        .collect();
    whole.sort_by_key(|&(round, _)| round);
    mean_ratio(&whole.into_iter().map(|(_, v)| v).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
