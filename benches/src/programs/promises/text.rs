//! The table on standard output.

use super::Record;
use super::judge::{Row, Verdict};
use super::promise::Bound;
use crate::programs::harness::comparison::{Measured, Side};
use crate::report::{Table, distinct, units};
use crate::workloads::figure::Figure;
use std::fmt::Write;

/// All promises, a table a lock, and how many are kept.
pub fn tables(record: &Record) -> String {
    let mut out = String::new();
    let locks = distinct(record.rows.iter().map(|row| row.lock.as_str()));
    let of = |lock: &str| record.rows.iter().filter(|row| row.lock == lock).collect::<Vec<_>>();
    for lock in locks {
        writeln!(out, "\n{lock}").unwrap();
        table(&of(lock)).print(&mut out);
    }
    write!(out, "\n{}", record.notes(NOTES)).unwrap();
    writeln!(out, "\n{}", summary(record)).unwrap();
    out
}

const NOTES: &str = "\
measured: ratios are of the same round, [95 % interval], {range} over two modes; other figures are medians over rounds.
holds: all of the interval keeps the bound; FALLS SHORT: none of it does; no verdict: the bound is inside (--rounds N).";

fn table(rows: &[&Row]) -> Table {
    let header = ["promise", "measured", "bound", "verdict", "", "of", "to"];
    let mut table = Table::new(&[0, 3, 5, 6], &header);
    for row in rows {
        let (measured, of, to) = match &row.measured {
            Some(measured) => (
                value(row, measured),
                side(row.figure, &measured.mine),
                measured
                    .other
                    .as_ref()
                    .map_or(String::new(), |other| format!("{} {}", other.lock, side(row.figure, other))),
            ),
            None => ("-".into(), row.reason.clone().unwrap_or_default(), String::new()),
        };
        let verdict = row.verdict.to_string();
        table.row(vec![row.what.clone(), measured, bound(row), verdict, String::new(), of, to]);
    }
    table
}

fn value(row: &Row, measured: &Measured) -> String {
    let show = |value: f64| if row.ratio { units::fixed(value) } else { absolute(row.figure, value) };
    match (measured.interval, measured.two_modes) {
        (Some((low, high)), false) => format!("{} [{} {}]", show(measured.value), show(low), show(high)),
        (Some((low, high)), true) => format!("{{{} .. {}}}", show(low), show(high)),
        (None, _) => format!("{} [?]", show(measured.value)),
    }
}

fn bound(row: &Row) -> String {
    let show = |value: f64| match row.ratio {
        true => value.to_string(),
        false => absolute(row.figure, value),
    };
    match row.bound {
        Bound::AtLeast(value) => format!(">= {}", show(value)),
        Bound::AtMost(value) => format!("<= {}", show(value)),
        Bound::Within(value) => format!("{} to {}", units::fixed(1.0 / value), units::fixed(value)),
        Bound::Shown => String::new(),
    }
}

fn side(figure: Figure, side: &Side) -> String {
    match side.modes {
        Some((slow, fast)) => format!(
            "{}|{} ({}+{} rounds)",
            absolute(figure, slow.per_s),
            absolute(figure, fast.per_s),
            slow.rounds,
            fast.rounds
        ),
        None => absolute(figure, side.value),
    }
}

fn absolute(figure: Figure, value: f64) -> String {
    match figure {
        Figure::PerSecond | Figure::HogsPerSecond | Figure::WritesPerSecond => {
            format!("{}/s", units::rate(value))
        }
        Figure::Cov | Figure::FutexesPerOp | Figure::CallsPerOp | Figure::SwitchesPerOp | Figure::Share => {
            units::digits(value)
        }
        Figure::WorstWait
        | Figure::WaitP99
        | Figure::WaitP50
        | Figure::PairNs
        | Figure::Recovery
        | Figure::SlowestRecovery
        | Figure::CpuPerOp
        | Figure::TopP999
        | Figure::TopP99
        | Figure::MaskedMax => units::time(value),
    }
}

fn summary(record: &Record) -> String {
    let count = |verdict| record.rows.iter().filter(|row| row.verdict == verdict).count();
    let mut parts = Vec::new();
    for (verdict, words) in [
        (Verdict::Holds, "hold"),
        (Verdict::FallsShort, "fall short"),
        (Verdict::None, "without a verdict"),
        (Verdict::NoData, "without data"),
    ] {
        if count(verdict) > 0 {
            parts.push(format!("{} {words}", count(verdict)));
        }
    }
    format!("promises: {}", if parts.is_empty() { "none".into() } else { parts.join(", ") })
}
