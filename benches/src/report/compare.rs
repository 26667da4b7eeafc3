//! Two records side by side: what changed from one run to another.
//!
//! Rounds of two runs are not paired. So an interval is that of two independent means of logarithms
//! (Welch's, with the fewer degrees of freedom of the two), and is wider than those inside a run. A
//! machine that became faster or slower shows in all locks alike: the rates of std and of no lock
//! say so.

use super::summary::{Rates, rates};
use super::{Cell, Kind, Report, Table, units};
use crate::statistics::rounds::{Ratio, Verdict};
use crate::statistics::{geometric_mean, mean, standard_deviation, student_t};
use std::fmt::Write;

/// The comparison, as text: a table of all cells that both records have, then the verdicts counted.
pub fn compare(before: &Report, after: &Report) -> String {
    let mut out = String::new();
    writeln!(out, "A: {}\nB: {}", before.machine, after.machine).unwrap();
    if before.machine.cpu_model != after.machine.cpu_model {
        writeln!(out, "These are two processors: compare the columns by std, not the rates.").unwrap();
    }
    let (rates_a, rates_b) = (rates(before), rates(after));
    let mut table = Table::new(
        &[0, 2, 6],
        &["workload", "threads", "lock", "A ops/s", "B ops/s", "B by A", "verdict", "A by std", "B by std"],
    );
    let (mut faster, mut slower, mut none) = (0, 0, 0);
    let mut drift = Vec::new();
    for (index_b, cell) in after.cells.iter().enumerate().filter(|(_, cell)| cell.is_main()) {
        let Some(index_a) = before.cells.iter().position(|other| other == cell) else { continue };
        for lock in &after.locks {
            let of = |rates: &Rates<'_>, cell: usize| -> Option<Vec<f64>> {
                Some(rates.get(&(lock.name.as_str(), cell))?.iter().map(|&(_, rate)| rate).collect())
            };
            let (Some(a), Some(b)) = (of(&rates_a, index_a), of(&rates_b, index_b)) else { continue };
            let ratio = unpaired(&b, &a);
            match ratio.verdict() {
                Verdict::Faster => faster += 1,
                Verdict::Slower => slower += 1,
                Verdict::None | Verdict::TwoModes => none += 1,
            }
            if lock.name == super::STD || after.kind(&lock.name) == Kind::Baseline {
                drift.push(ratio.value);
            }
            table.row(row(before, after, &lock.name, *cell, (&a, &b), ratio));
        }
    }
    if faster + slower + none == 0 {
        writeln!(out, "The records have no cell with the same lock, workload and threads in common.")
            .unwrap();
        return out;
    }
    table.print(&mut out);
    writeln!(
        out,
        "\n{} cells: B is faster in {faster}, slower in {slower}, no verdict in {none}.",
        faster + slower + none
    )
    .unwrap();
    writeln!(out, "Of so many cells, one in twenty has a wrong verdict by chance.").unwrap();
    if !drift.is_empty() {
        let drift = units::fixed(geometric_mean(&drift));
        writeln!(out, "The machine: std and no lock have {drift} of their rates in A, in the mean.").unwrap();
    }
    out
}

fn row(
    before: &Report,
    after: &Report,
    lock: &str,
    cell: Cell,
    (a, b): (&[f64], &[f64]),
    ratio: Ratio,
) -> Vec<String> {
    let by_std = |report: &Report| {
        units::ratio(report.summary.point(lock, cell.workload, cell.threads).and_then(|point| point.vs_std))
    };
    vec![
        units::workload(cell.workload),
        cell.threads.to_string(),
        lock.to_owned(),
        units::rate(geometric_mean(a)),
        units::rate(geometric_mean(b)),
        units::ratio(Some(ratio)),
        ratio.verdict().as_str().to_owned(),
        by_std(before),
        by_std(after),
    ]
}

/// The ratio of two geometric means whose values are not paired.
fn unpaired(a: &[f64], b: &[f64]) -> Ratio {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (log_a, log_b) = (logs(a), logs(b));
    let value = mean(&log_a) - mean(&log_b);
    let fewer = log_a.len().min(log_b.len());
    let interval = (fewer >= 2).then(|| {
        let part = |values: &[f64]| standard_deviation(values).powi(2) / values.len() as f64;
        let half = student_t(fewer - 1) * (part(&log_a) + part(&log_b)).sqrt();
        ((value - half).exp(), (value + half).exp())
    });
    Ratio { value: value.exp(), interval, rounds: fewer, two_modes: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{empty, filled, plain};

    #[test]
    fn a_run_that_is_twice_as_fast_is_faster_in_every_cell() {
        let noisy = |factor: f64| {
            filled(5, move |_, _, round| factor * [1.0, 1.01, 0.99, 1.0, 1.02][round as usize] * 100e3)
        };
        let text = compare(&noisy(1.0), &noisy(2.0));
        // Four locks in four cells.
        assert!(text.contains("16 cells: B is faster in 16, slower in 0, no verdict in 0."), "{text}");
        assert!(text.contains("std and no lock have 2.00 of their rates in A"), "{text}");
        assert!(compare(&noisy(1.0), &noisy(0.5)).contains("B is faster in 0, slower in 16"));
    }

    #[test]
    fn a_run_beside_itself_has_no_verdict() {
        let text = compare(&plain(7), &plain(7));
        assert!(text.contains("B is faster in 0, slower in 0, no verdict in 16."), "{text}");
    }

    #[test]
    fn records_without_a_common_cell_say_so() {
        assert!(compare(&empty(), &plain(3)).contains("have no cell"));
    }

    #[test]
    fn an_interval_is_that_of_two_independent_means() {
        // Logarithms 0, 1, 2 and 1, 2, 3: means 1 apart, each of variance 1 / 3; t(2) = 4.303.
        let values = |first: i32| (first..first + 3).map(|log| f64::from(log).exp()).collect::<Vec<_>>();
        let ratio = unpaired(&values(1), &values(0));
        let half = 4.303 * (2.0_f64 / 3.0).sqrt();
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value.ln() - 1.0).abs() < 1e-9);
        assert!((low.ln() - (1.0 - half)).abs() < 1e-2 && (high.ln() - (1.0 + half)).abs() < 1e-2);
        assert_eq!(unpaired(&[1.0], &[2.0]).interval, None);
    }
}
