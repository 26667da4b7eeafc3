//! The three plots of a workload.

use super::svg::{Mark, Plot, Series, draw};
use super::{Kind, Lock, PARKING_LOT, Point, Report, STD, units};
use crate::workloads::Workload;

/// Throughput, p99.9 wait and COV against the number of threads.
pub fn of_workload(report: &Report, workload: Workload) -> [String; 3] {
    let rates: Vec<f64> = points(report, workload).map(Point::typical).collect();
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    [
        plot(report, workload, "operations per second", high > 12.0 * low, units::rate, |p| {
            let modes = p.modes.map(|(slow, fast)| (slow.per_s, fast.per_s));
            let value = p.typical();
            let band = p.per_s.interval.filter(|_| modes.is_none()).unwrap_or((value, value));
            Some(Mark { threads: p.threads, value, band, modes })
        }),
        plot(report, workload, "p99.9 wait", true, units::time, |p| {
            let spread = p.waits?.p999;
            let at_least = |v: f64| v.max(1.0); // a logarithmic axis has no zero
            Some(Mark {
                threads: p.threads,
                value: at_least(spread.median),
                band: (at_least(spread.low), at_least(spread.high)),
                modes: None,
            })
        }),
        plot(report, workload, "COV between threads, 0 is fair", false, units::fixed, |p| {
            Some(Mark { threads: p.threads, value: p.cov.median, band: (p.cov.low, p.cov.high), modes: None })
        }),
    ]
}

fn points(report: &Report, workload: Workload) -> impl Iterator<Item = &Point> {
    report.summary.points.iter().filter(move |p| p.workload == workload)
}

/// Whose bands are always shown; those of the others only under the pointer, or they would cover
/// everything.
fn is_reference(lock: &Lock) -> bool {
    lock.kind == Kind::Family || lock.name == STD || lock.name == PARKING_LOT
}

fn plot(
    report: &Report,
    workload: Workload,
    title: &str,
    log: bool,
    unit: fn(f64) -> String,
    mark: impl Fn(&Point) -> Option<Mark>,
) -> String {
    let threads = report.threads(workload);
    let series = report.locks.iter().enumerate().map(|(index, lock)| Series {
        name: &lock.name,
        class: format!("s{index}{}", if is_reference(lock) { " ref" } else { "" }),
        points: points(report, workload).filter(|p| p.lock == lock.name).filter_map(&mark).collect(),
    });
    draw(&Plot {
        title: format!("{title}{}", if log { ", logarithmic" } else { "" }),
        axis: "threads",
        threads: &threads,
        cpus: report.cpus(),
        log,
        unit,
        series: series.filter(|s| !s.points.is_empty()).collect(),
    })
}
