//! The results as a table.

use super::programs::{Outcome, Real};
use super::statistics::median;
use super::statistics::rounds::{ENOUGH_ROUNDS, Estimate, middle};
use super::{Measured, Subject};
use anyhow::Context;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One line of the table.
struct Row {
    program: &'static str,
    subject: &'static str,
    unit: &'static str,
    rounds: usize,
    rate: Option<f64>,
    p99_us: Option<f64>,
    cpu: Option<f64>,
    /// Rates and CPU times, each by that of glibc in the same round.
    ratios: Vec<f64>,
    cpu_ratios: Vec<f64>,
    result: String,
}

fn good(subject: &Subject) -> impl Iterator<Item = &Outcome> {
    subject.rounds.iter().filter_map(|round| round.as_ref().ok())
}

/// What a subject had, by what glibc had, in the rounds in which both have it.
///
/// A round runs every subject once. So such a ratio does not change when the machine becomes slower
/// from one round to the next.
fn by_rounds(ours: &Subject, theirs: &Subject, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    let both = ours.rounds.iter().zip(&theirs.rounds);
    let ratios =
        both.filter_map(|(ours, theirs)| Some(value(ours.as_ref().ok()?) / value(theirs.as_ref().ok()?)));
    ratios.filter(|ratio| ratio.is_finite()).collect()
}

/// `None` without a value.
fn median_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| median(&values))
}

/// Why a subject is a failure, if it is.
fn fault(subject: &Subject, measured: &Measured) -> Option<String> {
    if let Some(error) = subject.rounds.iter().find_map(|round| round.as_ref().err()) {
        return Some(error.clone());
    }
    let expected = good(&measured.subjects[0]).find_map(|outcome| outcome.answer.as_deref());
    let wrong = good(subject)
        .find_map(|outcome| outcome.answer.as_deref().filter(|&answer| Some(answer) != expected))?;
    Some(format!(
        "another answer than glibc's: {:?}, not {:?}",
        wrong.trim(),
        expected.unwrap_or_default().trim()
    ))
}

/// The failures of a program, one line or more for each.
pub fn failures(measured: &Measured) -> Vec<String> {
    let faults =
        measured.subjects.iter().filter_map(|subject| Some((subject.name, fault(subject, measured)?)));
    faults.map(|(name, fault)| format!("{} with {name}: {fault}", measured.real.name)).collect()
}

fn rows(measured: &Measured) -> Vec<Row> {
    let glibc = &measured.subjects[0];
    let row = |subject: &Subject| {
        let ratios = |value: fn(&Outcome) -> f64| {
            if subject.name == glibc.name { Vec::new() } else { by_rounds(subject, glibc, value) }
        };
        let has_answer = good(subject).any(|outcome| outcome.answer.is_some());
        Row {
            program: measured.real.name,
            subject: subject.name,
            unit: measured.real.unit,
            rounds: good(subject).count(),
            rate: median_of(good(subject).map(|outcome| outcome.rate)),
            p99_us: median_of(good(subject).filter_map(|outcome| outcome.p99_us)),
            cpu: median_of(good(subject).map(|outcome| outcome.cpu_per_million)),
            ratios: ratios(|outcome| outcome.rate),
            cpu_ratios: ratios(|outcome| outcome.cpu_per_million),
            result: match fault(subject, measured) {
                Some(fault) => format!("FAILED: {}", fault.lines().next().unwrap_or_default()),
                None if has_answer => "same answer".into(),
                None => "ok".into(),
            },
        }
    };
    measured.subjects.iter().map(row).collect()
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value >= 1000.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

fn shown(ratios: &[f64]) -> String {
    if ratios.is_empty() {
        return "-".into();
    }
    let Estimate { value, interval, .. } = middle(ratios);
    let (low, high) = interval.unwrap_or((value, value));
    let differs = ratios.len() >= ENOUGH_ROUNDS && (low > 1.0 || high < 1.0);
    format!("{value:.2} ({low:.2} to {high:.2}){}", if differs { " *" } else { "" })
}

const HEAD: [&str; 10] = [
    "program",
    "locks",
    "rounds",
    "rate",
    "unit",
    "rate by glibc",
    "CPU s/million",
    "CPU by glibc",
    "p99 us",
    "result",
];

const NOTE: &str = "Rates, CPU times and p99 are medians of the rounds. A ratio compares runs of the same \
     round: its median, and the interval of the sign test. A star marks an interval of at least 95 % that \
     excludes 1. CPU time is that of the program under test, not of its clients.";

fn cells(row: &Row) -> [String; 10] {
    [
        row.program.into(),
        row.subject.into(),
        row.rounds.to_string(),
        number(row.rate),
        row.unit.into(),
        shown(&row.ratios),
        number(row.cpu),
        shown(&row.cpu_ratios),
        number(row.p99_us),
        row.result.clone(),
    ]
}

/// A table in Markdown, whose first line is the head, with columns of equal width.
pub fn aligned(lines: &[Vec<String>]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (nth, line) in lines.iter().enumerate() {
        let padded: Vec<_> = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{:width$}", cell.replace('|', "/")))
            .collect();
        _ = writeln!(text, "| {} |", padded.join(" | "));
        if nth == 0 {
            let rules: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
            _ = writeln!(text, "| {} |", rules.join(" | "));
        }
    }
    text
}

/// The results as a table, with columns of equal width.
pub fn markdown(measured: &[Measured], skipped: &[&Real]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(measured.iter().flat_map(rows).map(|row| cells(&row).to_vec()));
    let mut text = aligned(&lines);
    for real in skipped {
        _ = writeln!(text, "\n{} was skipped: {}", real.name, real.missing().unwrap_or_default());
    }
    _ = writeln!(text, "\n{NOTE}");
    text
}

/// The processors and the kernel.
fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cpus} CPUs, {}, Linux {}", model.trim_start_matches(['\t', ' ', ':']), kernel.trim())
}

/// Writes the table.
pub fn write(measured: &[Measured], skipped: &[&Real], dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    fs::write(dir.join("real.md"), format!("{}\n\n{}", machine(), markdown(measured, skipped)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::programs::REAL;
    use super::*;

    fn subject(name: &'static str, rates: &[f64], answer: Option<&str>) -> Subject {
        let outcome = |&rate: &f64| {
            Ok(Outcome { rate, answer: answer.map(str::to_owned), ..Outcome::of(1.0, 1.0, 1.0) })
        };
        Subject { name, rounds: rates.iter().map(outcome).collect() }
    }

    fn measured(subjects: Vec<Subject>) -> Measured {
        Measured { real: &REAL[0], subjects }
    }

    #[test]
    fn ratios_compare_runs_of_the_same_round() {
        let glibc = subject("glibc", &[10.0, 100.0, 10.0, 100.0, 10.0, 100.0], None);
        let fair = subject("fair", &[20.0, 200.0, 20.0, 200.0, 20.0, 200.0], None);
        let measured = measured(vec![glibc, fair]);
        assert!(failures(&measured).is_empty());
        let text = markdown(&[measured], &[]);
        assert!(text.contains("| 2.00 (2.00 to 2.00) *"), "{text}");
    }

    #[test]
    fn few_rounds_have_no_star_and_the_interval_of_more_leaves_out_the_extremes() {
        let ratios: Vec<f64> = (0..20).map(|nth| f64::from(100 + nth) / 50.0).collect();
        assert_eq!(shown(&ratios), "2.19 (2.10 to 2.28) *");
        assert_eq!(shown(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]), "1.25 (1.00 to 1.50)");
        assert_eq!(shown(&[2.0; 5]), "2.00 (2.00 to 2.00)");
        assert_eq!((shown(&[2.0]), shown(&[])), ("2.00 (2.00 to 2.00)".into(), "-".into()));
        let [ours, theirs] = [&[1.0, 4.0], &[0.0, 2.0]].map(|rates| subject("x", rates, None));
        assert_eq!(by_rounds(&ours, &theirs, |outcome| outcome.rate), [2.0]);
    }

    #[test]
    fn another_answer_and_an_error_are_failures() {
        let mut hung = subject("calock", &[], None);
        hung.rounds.push(Err("`x` hung".into()));
        let glibc = subject("glibc", &[1.0], Some("42\n"));
        let measured = measured(vec![glibc, subject("fair", &[1.0], Some("43\n")), hung]);
        let failures = failures(&measured);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].contains("43") && failures[0].contains("42"), "{failures:?}");
        assert!(failures[1].contains("hung"), "{failures:?}");
        let text = markdown(&[measured], &[]);
        assert!(text.contains("FAILED: `x` hung"), "{text}");
    }
}
