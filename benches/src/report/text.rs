//! The tables on standard output.

use super::{Ended, Kind, Mode, Point, Report, Score, WaitSummary, units};
use crate::statistics::rounds::Verdict;
use crate::workloads::Workload;
use std::fmt::Write;

/// Rows of text in columns as wide as their widest cell; the first `left` columns lean left, the
/// others right.
pub(crate) struct Table {
    left: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(left: &[usize], header: &[&str]) -> Self {
        Self { left: left.to_vec(), rows: vec![header.iter().map(|&h| h.into()).collect()] }
    }

    pub(crate) fn row(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// A column without a title holds marks and belongs to the column before it.
    fn marks(&self, column: usize) -> bool {
        self.rows[0][column].is_empty()
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn print(&self, out: &mut String) {
        let columns = self.rows[0].len();
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (c, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if c == 0 || self.marks(c) { "" } else { "  " };
                if self.left.contains(&c) {
                    write!(line, "{gap}{cell:<width$}").unwrap();
                } else {
                    write!(line, "{gap}{cell:>width$}").unwrap();
                }
            }
            writeln!(out, "{}", line.trim_end()).unwrap();
            if index == 0 {
                let gaps = (1..columns).filter(|&c| !self.marks(c)).count();
                writeln!(out, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * gaps)).unwrap();
            }
        }
    }
}

/// Each of them once, in their order.
pub(crate) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// All tables of a run: one for each workload, then the summary.
pub fn tables(report: &Report) -> String {
    let mut out = String::new();
    for workload in report.workloads() {
        writeln!(out, "\n{}", units::workload(workload)).unwrap();
        workload_table(report, workload).print(&mut out);
    }
    writeln!(out, "\n{NOTES}").unwrap();
    for line in caveats(report) {
        writeln!(out, "{line}").unwrap();
    }
    writeln!(out, "\nAll contended cells (two threads and more)").unwrap();
    summary_table(report).print(&mut out);
    writeln!(out, "\n{SUMMARY_NOTES}").unwrap();
    out
}

const NOTES: &str = "\
*          best of its thread count; `none` (no lock at all) is a ceiling and takes no part
ops/s      all threads together; +- is half of its 95 % interval; a|b are two modes, not to be averaged, and how
           many rounds ran in each
vs         throughput by throughput of the same round, with its 95 % interval; {a .. b} is the range over two modes
COV        standard deviation by mean of the threads' operations; shares: least and most served thread, by the mean
p50..max   wait for the lock, medians over rounds; max is the longest wait of all rounds
cpu/op     user and system time of all threads per operation, the work inside and outside included
sleeps/op  voluntary context switches per operation: how often a thread slept in the kernel";

const SUMMARY_NOTES: &str = "\
uncontended  one thread, nothing inside or outside, by std
cpu vs std   CPU time per operation by that of std, less is better
+ - ?        cells in which the lock is faster than std, slower, and in which the interval allows no verdict
best peer    throughput by that of the best lock of the cell that is not of this family: geometric mean, worst cell";

/// What a reader must know before quoting a figure of this run.
pub fn caveats(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    match report.mode {
        Mode::Full => {}
        Mode::Quick => lines.push(
            "This is a quick look: few locks, short windows, few rounds. Quote figures of a full `cargo bench` only."
                .into(),
        ),
        Mode::Smoke => lines.push("This is a smoke run: it shows that the program works and measures nothing.".into()),
    }
    lines.extend(report.machine.translated());
    if report.ended == Ended::Interrupted {
        lines.push("The run was interrupted: what follows rests on the trials that had ended.".into());
    }
    if let Some(last) = report.resumed.last() {
        let rounds =
            if report.resumed.len() == 1 { "once".into() } else { format!("{} times", report.resumed.len()) };
        lines.push(format!(
            "The run was interrupted and resumed {rounds}, last at {last}: the machine may have changed in between."
        ));
    }
    if !report.options.left_out.is_empty() {
        lines.push(format!(
            "Left out, to keep the time: {}. `--full` measures all.",
            report.options.left_out.join(", ")
        ));
    }
    if report.ended != Ended::Converged && report.mode != Mode::Smoke {
        lines.push(format!(
            "Not every cell is known to +-{:.0} %: {}.",
            report.options.precision * 100.0,
            match report.ended {
                Ended::Budget => "the time was used up",
                Ended::Rounds => "the greatest number of rounds was run",
                Ended::Interrupted | Ended::Converged => "the run was cut short",
            }
        ));
    }
    if let Some(share) = report.summary.cpu_share.filter(|&s| s < 0.9) {
        lines.push(format!(
            "Without any lock the threads got only {:.0} % of the CPUs: something else was running. Compare ratios, and \
             those with care.",
            100.0 * share
        ));
    }
    let crowd = report.options.threads.iter().max().copied().unwrap_or(0) / report.cpus();
    if crowd >= 8 && report.options.window_ms < 1000 {
        lines.push(format!(
            "With {crowd} threads for a CPU a window of {} ms holds few time slices: COV there says more about the \
             scheduler than about the lock.",
            report.options.window_ms
        ));
    }
    let two = report.summary.points.iter().filter(|p| p.modes.is_some()).count();
    if two > 0 {
        lines.push(format!(
            "{two} of {} points have two modes (best round over twice the worst); no mean is given for them.",
            report.summary.points.len()
        ));
    }
    lines
}

/// The best points of one thread count: greatest throughput, least p99.9, least CPU time per
/// operation.
#[derive(Default)]
pub struct Best<'a> {
    /// Greatest throughput.
    pub rate: Option<&'a Point>,
    /// Shortest p99.9 wait.
    pub p999: Option<&'a Point>,
    /// Least CPU time.
    pub cpu: Option<&'a Point>,
}

impl<'a> Best<'a> {
    /// Looks among locks only.
    pub fn of(report: &Report, points: &[&'a Point]) -> Self {
        let locks = || points.iter().copied().filter(|p| report.kind(&p.lock) != Kind::Baseline);
        let p999 = |p: &Point| p.waits.map_or(f64::INFINITY, |w| w.p999.median);
        Self {
            rate: locks().max_by(|a, b| a.typical().total_cmp(&b.typical())),
            p999: locks().filter(|p| p.waits.is_some()).min_by(|a, b| p999(a).total_cmp(&p999(b))),
            cpu: locks().min_by(|a, b| a.cpu_ns.median.total_cmp(&b.cpu_ns.median)),
        }
    }
}

fn workload_table(report: &Report, workload: Workload) -> Table {
    let mut table = Table::new(
        &[1],
        &[
            "threads",
            "lock",
            "ops/s",
            "",
            "95 %",
            "vs std",
            "vs parking_lot",
            "COV",
            "shares",
            "p50",
            "p99",
            "p99.9",
            "",
            "max",
            "cpu/op",
            "",
            "sleeps/op",
        ],
    );
    for (group, threads) in report.threads(workload).into_iter().enumerate() {
        if group > 0 {
            table.gap();
        }
        let points: Vec<&Point> =
            report.locks.iter().filter_map(|l| report.summary.point(&l.name, workload, threads)).collect();
        let best = Best::of(report, &points);
        let star = |of: Option<&Point>, p: &Point| {
            if of.is_some_and(|b| std::ptr::eq(b, p)) { "*" } else { "" }.to_string()
        };
        for point in points {
            let wait = |of: &dyn Fn(&WaitSummary) -> f64| {
                point.waits.as_ref().map_or("-".into(), |w| units::time(of(w)))
            };
            let row = vec![
                threads.to_string(),
                point.lock.clone(),
                units::throughput(point),
                star(best.rate, point),
                units::certainty(point),
                units::ratio(point.vs_std),
                units::ratio(point.vs_parking_lot),
                units::fixed(point.cov.median),
                format!("{}-{}", units::fixed(point.least.median), units::fixed(point.most.median)),
                wait(&|w| w.p50.median),
                wait(&|w| w.p99.median),
                wait(&|w| w.p999.median),
                star(best.p999, point),
                wait(&|w| w.max),
                units::time(point.cpu_ns.median),
                star(best.cpu, point),
                units::digits(point.sleeps.median),
            ];
            table.rows.push(row);
        }
    }
    table
}

/// The verdict on a lock over all contended cells, in words; a mean that hides losses says so.
pub fn verdict(score: &Score) -> &'static str {
    let Some(ratio) = score.vs_std else { return "-" };
    match ratio.verdict() {
        Verdict::Faster if score.tally.slower > 0 => "faster on average",
        Verdict::Slower if score.tally.faster > 0 => "slower on average",
        verdict => verdict.as_str(),
    }
}

fn summary_table(report: &Report) -> Table {
    let mut table = Table::new(
        &[0, 3, 9],
        &[
            "lock",
            "uncontended",
            "vs std",
            "verdict",
            "cpu vs std",
            "+",
            "-",
            "?",
            "best peer",
            "worst cell",
            "vs parking_lot",
            "COV up to",
            "p99.9 up to",
        ],
    );
    for score in &report.summary.scores {
        let compared = report.kind(&score.lock) != Kind::Baseline;
        let tally = |n: usize| if score.vs_std.is_some() { n.to_string() } else { "-".into() };
        let worst = score.worst.as_ref().filter(|_| compared).map_or("-".into(), |w| {
            format!(
                "{} at {} threads, ({}, {}), by {}",
                units::fixed(w.ratio),
                w.threads,
                units::short_time(w.workload.hold_ns),
                units::short_time(w.workload.non_hold_ns),
                w.peer
            )
        });
        table.rows.push(vec![
            score.lock.clone(),
            units::ratio(score.uncontended),
            units::ratio(score.vs_std),
            if compared { verdict(score) } else { "ceiling" }.into(),
            units::ratio(score.cpu_vs_std),
            tally(score.tally.faster),
            tally(score.tally.slower),
            tally(score.tally.none),
            score.vs_best.filter(|_| compared).map_or("-".into(), units::fixed),
            worst,
            units::ratio(score.vs_parking_lot),
            units::fixed(score.max_cov),
            score.max_p999.map_or("-".into(), units::time),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
