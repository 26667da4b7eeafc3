//! One row of the table: a lock under one workload, run until its throughput is known.

use super::plan::{Cell, Plan, Purpose, Variant};
use crate::statistics;
use crate::subjects::locks::Entry;
use crate::workloads::trial::TrialResult;
use std::fmt::Display;

/// The runs of a variant so far.
#[derive(Debug)]
pub struct Series {
    /// What runs.
    pub variant: Variant,
    /// The counted runs.
    pub runs: Vec<TrialResult>,
    /// The close look, where one is needed.
    pub closer: Option<TrialResult>,
    /// Why it was given up.
    pub failed: Option<String>,
}

impl Series {
    /// Nothing has run yet.
    pub fn new(variant: Variant) -> Self {
        Self { variant, runs: Vec::new(), closer: None, failed: None }
    }

    /// Takes in the result of a run.
    pub fn take(&mut self, purpose: Purpose, result: TrialResult) {
        match purpose {
            Purpose::WarmUp => {}
            Purpose::Count => self.runs.push(result),
            Purpose::CloseLook => self.closer = Some(result),
        }
    }

    /// Whether the 95 % interval of the throughput is narrow enough.
    pub fn settled(&self, plan: &Plan) -> bool {
        let rates: Vec<_> = self.runs.iter().map(throughput).collect();
        rates.len() >= plan.min_runs && statistics::mean_interval(&rates).relative_half_width() <= plan.width
    }
}

/// A finished row, as it goes into the table.
#[derive(Debug)]
pub struct Row {
    /// Column c: children.
    pub children: u32,
    /// Column a: locks.
    pub lock_count: u32,
    /// Column t: seconds of each run.
    pub seconds: f64,
    /// Column i: counted runs.
    pub runs: usize,
    /// Whether the 95 % interval of the throughput was reached.
    pub settled: bool,
    /// Whether the runs lie so far apart that their mean means nothing.
    pub bimodal: bool,
    /// Column L: its letter, and the percentage of readers if it has a shared mode.
    pub letter: String,
    /// Column p, for locks that have it as a parameter.
    pub patience_ns: Option<u32>,
    /// Column r: mean time outside.
    pub non_hold_ns: u64,
    /// Column x: mean time inside.
    pub hold_ns: u64,
    /// Column WC: contended exclusive acquisitions, percent.
    pub write_contention: Option<f64>,
    /// Column RC: contended shared acquisitions, percent.
    pub read_contention: Option<f64>,
    /// Column R: entries into the kernel to sleep per contended acquisition.
    pub reentries: Option<f64>,
    /// Column COV: coefficient of variation of the children's loops.
    pub cov: f64,
    /// Column ThPut: loops per second of all children, mean of the runs.
    pub throughput: f64,
    /// The slowest run.
    pub throughput_min: f64,
    /// The fastest run.
    pub throughput_max: f64,
    /// Column p99.9: 99.9th percentile of the wait for the lock.
    pub wait_p999_ns: Option<f64>,
    /// Column CPU: processor time of a loop.
    pub cpu_ns_per_loop: Option<f64>,
}

impl Row {
    /// Sums up, or says why there is nothing to sum up.
    pub fn new(plan: &Plan, cell: &Cell, series: Series) -> Result<Self, String> {
        let settled = series.settled(plan);
        let Series { variant, runs, closer, failed } = series;
        if let Some(reason) = failed {
            return Err(reason);
        }
        let rates: Vec<_> = runs.iter().map(throughput).collect();
        let slowest = rates.iter().copied().reduce(f64::min).ok_or("no run was counted")?;
        let fastest = rates.iter().copied().fold(slowest, f64::max);
        // From the counted runs what they can tell, the rest from the close look.
        let mut waits: Vec<_> = runs.iter().filter_map(|run| run.waits).collect();
        if waits.is_empty() {
            waits.extend(closer.as_ref().and_then(|run| run.waits));
        }
        let counted = runs.iter().filter_map(|run| run.meters).reduce(|a, b| a.zip(b, u64::wrapping_add));
        let meters = counted.or(closer.as_ref().and_then(|run| run.meters));
        let p999: Vec<_> = waits.iter().map(|waits| waits.p999 as f64).collect();
        let covs: Vec<_> = runs.iter().map(|run| statistics::cov(&run.counts)).collect();
        let loops: u64 = runs.iter().flat_map(|run| &run.counts).sum();
        let cpu_s: f64 = runs.iter().map(|run| run.user_s + run.system_s).sum();
        Ok(Self {
            children: cell.workers.count(),
            lock_count: plan.lock_count,
            seconds: plan.window_ms as f64 / 1e3,
            runs: runs.len(),
            settled,
            bimodal: statistics::bimodal(&rates),
            letter: letter(variant.entry, variant.read_share),
            patience_ns: variant.entry.patience_ns,
            non_hold_ns: cell.non_hold_ns,
            hold_ns: cell.hold_ns,
            write_contention: meters.and_then(|meters| meters.write_contention(variant.read_share)),
            read_contention: meters.and_then(|meters| meters.read_contention(variant.read_share)),
            reentries: meters.map(|meters| meters.reentries()),
            cov: statistics::mean(&covs),
            throughput: statistics::mean(&rates),
            throughput_min: slowest,
            throughput_max: fastest,
            wait_p999_ns: (!p999.is_empty()).then(|| statistics::median(&p999)),
            cpu_ns_per_loop: (loops > 0).then(|| cpu_s * 1e9 / loops as f64),
        })
    }
}

/// What stands in column L: the letter, and as Franke wrote it, the percentage of readers if there
/// may be any.
pub fn letter(entry: &Entry, read_share: impl Display) -> String {
    match entry.shared_mode && entry.excludes {
        true => format!("{}{read_share}", entry.letter),
        false => entry.letter.to_string(),
    }
}

/// Loops per second of all children.
fn throughput(run: &TrialResult) -> f64 {
    run.counts.iter().sum::<u64>() as f64 / run.elapsed_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pinning::Pin;
    use crate::subjects::locks::{self, Meters};
    use crate::workloads::trial::{Waits, Workers};

    const METERS: Meters =
        Meters { acquired: 1000, contended: 300, spun: 100, slept: 450, woke: 400, reader_contended: 60 };

    fn plan() -> Plan {
        Plan {
            cells: Vec::new(),
            variants: Vec::new(),
            lock_count: 1,
            warmup_ms: 1,
            window_ms: 100,
            min_runs: 3,
            max_runs: 7,
            width: 0.05,
            pin: Pin::None,
            iterations_per_us: 1000.0,
            seed: 1,
        }
    }

    /// A series of runs in which two children made so many loops each second, three quarters of
    /// them the first.
    fn series(rates: &[u64]) -> Series {
        let run = |&rate: &u64| TrialResult {
            counts: vec![rate * 3 / 4 / 2, rate / 4 / 2],
            elapsed_s: 0.5,
            user_s: 0.3,
            system_s: 0.1,
            ..TrialResult::default()
        };
        let variant = Variant { entry: locks::Entry::find("sysv").unwrap(), read_share: 0 };
        Series { runs: rates.iter().map(run).collect(), ..Series::new(variant) }
    }

    #[test]
    fn a_row_settles_when_its_interval_is_narrow() {
        assert!(!series(&[8000, 8000]).settled(&plan()), "too few runs");
        assert!(series(&[8000, 8000, 8000]).settled(&plan()));
        // The mean is 8000, the half width 4.303 * 800 / sqrt(3), about a quarter of it.
        assert!(!series(&[8000, 8800, 7200]).settled(&plan()));
        assert!(!series(&[0, 0, 0]).settled(&plan()), "nothing is known of a lock nobody got");
    }

    #[test]
    fn a_row_sums_up_its_runs() {
        let cell = Cell { workers: Workers::Threads(2), non_hold_ns: 9000, hold_ns: 1000 };
        let row = Row::new(&plan(), &cell, series(&[8000, 8800, 7200])).unwrap();
        assert_eq!((row.throughput, row.throughput_min, row.throughput_max), (8000.0, 7200.0, 8800.0));
        assert_eq!((row.runs, row.settled, row.bimodal), (3, false, false));
        assert!((row.cov - 0.5).abs() < 1e-9, "{}", row.cov);
        // 1.2 s of CPU time for 12000 loops.
        assert!((row.cpu_ns_per_loop.unwrap() - 1e5).abs() < 1e-3, "{:?}", row.cpu_ns_per_loop);
        assert_eq!((row.write_contention, row.reentries, row.wait_p999_ns), (None, None, None));
        assert!(Row::new(&plan(), &cell, series(&[8000, 80000])).unwrap().bimodal);
        assert_eq!(Row::new(&plan(), &cell, series(&[])).unwrap_err(), "no run was counted");
        let failed = Series { failed: Some("lost updates".into()), ..series(&[8000, 8000, 8000]) };
        assert_eq!(Row::new(&plan(), &cell, failed).unwrap_err(), "lost updates");
    }

    #[test]
    fn what_the_counted_runs_do_not_tell_comes_from_the_close_look() {
        let cell = Cell { workers: Workers::Threads(2), non_hold_ns: 0, hold_ns: 0 };
        let waits = |p999| Some(Waits { p999, ..Waits::default() });
        let mut series = series(&[8000, 8000, 8000]);
        series.closer =
            Some(TrialResult { waits: waits(70), meters: Some(METERS), ..series.runs[0].clone() });
        series.runs[0].waits = waits(10);
        let row = Row::new(&plan(), &cell, series).unwrap();
        assert_eq!((row.wait_p999_ns, row.reentries), (Some(10.0), Some(1.5)));
    }

    #[test]
    fn contention_is_a_share_of_its_own_kind_of_acquisition() {
        let exclusive = Meters { reader_contended: 0, ..METERS };
        assert_eq!((exclusive.write_contention(0), exclusive.read_contention(0)), (Some(30.0), None));
        // 800 writes of which 240 waited, 200 reads of which 60 waited.
        assert_eq!((METERS.write_contention(20), METERS.read_contention(20)), (Some(30.0), Some(30.0)));
        assert_eq!(Meters { reader_contended: 300, ..METERS }.write_contention(100), None);
        assert_eq!(Meters::default().write_contention(0), None);
    }

    #[test]
    fn reentries_are_per_contended_acquisition() {
        assert_eq!(METERS.reentries(), 1.5);
        assert_eq!(Meters::default().reentries(), 0.0);
        assert_eq!(METERS.zip(METERS, u64::wrapping_add).reentries(), 1.5);
    }
}
