//! The law of figures: what BENCHMARKS.md says of `ulocks::Mutex` beside its peers
//! follows from the records.
//!
//! A table of ratios has a comment above it that names its record and the numbers of threads:
//!
//! ```text
//! <!-- record DAY-MACHINE-scaling; threads 2,4,8; (0, 0) 4,8 -->
//! ```
//!
//! That is the record `scaling` in the file `DAY-MACHINE.json`, whose lines are a table: a row is a
//! cell, a subject, a shape that names its figures, and the rounds of each figure.
//!
//! The columns of the table are workloads, its rows are `WHAT, against PEER`. A cell is the range
//! over the numbers of threads. The words behind a workload replace the numbers for its column.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "BENCHMARKS.md";
const RECORDS: &str = "benches/results";
/// `ulocks::Mutex`, as the records name it.
const LOCK: &str = "throughput";

/// The cells that the records refute.
pub fn faults(root: &Path) -> anyhow::Result<Vec<String>> {
    let read = |record: &str| {
        let of = |(at, _)| (root.join(RECORDS).join(&record[..at]).with_extension("json"), &record[at + 1..]);
        let mut places = record.rmatch_indices('-').map(of);
        let (file, name) = places.find(|(file, _)| file.is_file()).context("no file has this record")?;
        let kept: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        Ok(kept["records"][name].clone())
    };
    check(DOCUMENT, &fs::read_to_string(root.join(DOCUMENT))?, read)
}

/// The rounds of each figure of a subject in a cell.
type Figures = BTreeMap<String, Vec<Option<f64>>>;

/// A line of the file: a cell, a subject, a shape, and the rounds of each figure.
type Row = (usize, usize, usize, Vec<Vec<Option<f64>>>);

/// A record: its cells by section and number of threads, and its lines by cell and subject.
struct Record {
    cells: Vec<(String, f64)>,
    lines: BTreeMap<(usize, String), Figures>,
}

impl Record {
    fn new(record: &Value) -> anyhow::Result<Self> {
        let list = |value: &Value| value.as_array().cloned().context("not a list");
        let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
        let cell = |cell: Value| Ok((text(&cell["section"])?, cell["x"].as_f64().unwrap_or(0.0)));
        let cells = list(&record["cells"])?.into_iter().map(cell).collect::<anyhow::Result<Vec<_>>>()?;
        let subjects = list(&record["subjects"])?;
        let table = &record["lines"];
        let shapes: Vec<Vec<String>> =
            serde_json::from_value(table["shapes"].clone()).context("no shapes")?;
        let rows: Vec<Row> = serde_json::from_value(table["rows"].clone()).context("no rows")?;
        let line = |(cell, subject, shape, rounds): Row| {
            let subject = text(&subjects.get(subject).context("a row has no subject")?["name"])?;
            let names = shapes.get(shape).context("a row has no shape")?.iter().cloned();
            Ok(((cell, subject), names.zip(rounds).collect()))
        };
        Ok(Self { cells, lines: rows.into_iter().map(line).collect::<anyhow::Result<_>>()? })
    }

    /// The rounds of a figure with so many threads.
    fn rounds(&self, section: &str, threads: u64, subject: &str, figure: &str) -> Option<&[Option<f64>]> {
        let cell = self.cells.iter().position(|(name, x)| name == section && *x == threads as f64)?;
        Some(self.lines.get(&(cell, subject.to_owned()))?.get(figure)?)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

/// A rate whose best round is more than twice its worst has two modes, and no mean.
fn has_two_modes(rounds: &[Option<f64>]) -> bool {
    let (low, high) =
        rounds.iter().flatten().fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    high > 2.0 * low
}

/// The ratio of two figures, round by round: the geometric mean, or the median of two modes.
fn by_rounds(own: &[Option<f64>], other: &[Option<f64>], is_rate: bool) -> Option<f64> {
    let ratios: Vec<f64> = own.iter().zip(other).filter_map(|(a, b)| Some((*a)? / (*b)?)).collect();
    if is_rate && (has_two_modes(own) || has_two_modes(other)) {
        return median(ratios);
    }
    let count = ratios.len() as f64;
    (count > 0.0).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp())
}

fn check(
    document: &str,
    text: &str,
    read: impl Fn(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((at, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- record ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let (file, threads) = mark.split_once("; threads ").with_context(|| format!("{document}:{at}"))?;
        let record = read(file).and_then(|record| Record::new(&record));
        let record = record.with_context(|| format!("{document}:{at}: {file}"))?;
        let mut table = Vec::new();
        while let Some((number, row)) = lines.next_if(|(_, row)| row.is_empty() || row.starts_with('|')) {
            if !row.is_empty() && !row.contains("---") {
                table.push((number, row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()));
            }
        }
        let Some(((_, workloads), rows)) = table.split_first() else {
            bail!("{document}:{at}: no table follows");
        };
        for (number, cells) in rows {
            for (workload, cell) in workloads.iter().zip(cells).skip(1) {
                let threads = threads_of(threads, workload)?;
                let is = range(&record, cells[0], workload, &threads)
                    .with_context(|| format!("{document}:{number}: {} at {workload}", cells[0]))?;
                if is != *cell {
                    let what = format!("{} at {workload} is {is} in {file}, not {cell}", cells[0]);
                    faults.push(format!("{document}:{number}: {what}"));
                }
            }
        }
    }
    Ok(faults)
}

/// The numbers of threads for a column.
fn threads_of(mark: &str, workload: &str) -> anyhow::Result<Vec<u64>> {
    let mut parts = mark.split("; ");
    let all = parts.next().unwrap_or_default();
    let own = parts.find_map(|part| part.strip_prefix(workload));
    own.unwrap_or(all).trim().split(',').map(|number| Ok(number.parse()?)).collect()
}

/// The range of a ratio of the record over numbers of threads, as it is written.
fn range(record: &Record, row: &str, workload: &str, threads: &[u64]) -> anyhow::Result<String> {
    let (what, peer) = row.split_once(", against ").context("a row is `WHAT, against PEER`")?;
    let peer = peer.split(' ').next().unwrap_or_default();
    let section = format!("{workload} us");
    let ratio = |&threads: &u64| {
        let rounds = |subject: &str, figure: &str| {
            let rounds = record.rounds(&section, threads, subject, figure);
            rounds.with_context(|| format!("no {figure} of {subject} with {threads} threads"))
        };
        let both = |figure: &str| Ok::<_, anyhow::Error>((rounds(LOCK, figure)?, rounds(peer, figure)?));
        let known = |rounds: &[Option<f64>]| rounds.iter().flatten().copied().collect::<Vec<f64>>();
        match what {
            "throughput" => both("rate").map(|(own, other)| by_rounds(own, other, true))?,
            "CPU time per operation" => both("cpu").map(|(own, other)| by_rounds(own, other, false))?,
            "p99.9 wait" => {
                let (own, other) = both("wait-p99.9")?;
                median(known(own)).zip(median(known(other))).map(|(own, other)| own / other)
            }
            _ => bail!("no record has `{what}`"),
        }
        .with_context(|| format!("no figure with {threads} threads"))
    };
    let ratios: Vec<f64> = threads.iter().map(ratio).collect::<anyhow::Result<_>>()?;
    let (low, high) =
        ratios.iter().fold((f64::MAX, 0.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    Ok(format!("{} to {}", written(low), written(high)))
}

/// Two digits, or two behind the point below 2.
fn written(ratio: f64) -> String {
    match ratio {
        ..2.0 => format!("{ratio:.2}"),
        ..10.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{
        "subjects": [{"name": "throughput"}, {"name": "std"}],
        "cells": [{"section": "(1, 9) us", "x": 2.0}, {"section": "(1, 9) us", "x": 4.0}],
        "lines": {"shapes": [["rate", "wait-p99.9", "cpu"]], "rows": [
            [0, 0, 0, [[1.2, 1.875], [30, 30], [8, 8]]],
            [0, 1, 0, [[1.0, 1.0], [5, 15], [10, 10]]],
            [1, 0, 0, [[3.06, null], [990, null], [12, 12]]],
            [1, 1, 0, [[1.0, 1.0], [10, 10], [10, 10]]]
        ]}}"#;

    fn found(mark: &str, row: &str) -> Vec<String> {
        let text =
            format!("<!-- record x; threads {mark} -->\n\n| ratio | (1, 9) |\n|---|---|\n{row}\n\nEnd.");
        check("README.md", &text, |_| Ok(serde_json::from_str(RECORD)?)).unwrap()
    }

    #[test]
    fn a_cell_that_the_record_refutes_is_named() {
        assert_eq!(found("2,4", "| throughput, against std | 1.50 to 3.1 |"), [""; 0]);
        assert_eq!(found("2,4", "| CPU time per operation, against std | 0.80 to 1.20 |"), [""; 0]);
        assert_eq!(found("4", "| p99.9 wait, against std | 99 to 99 |"), [""; 0]);
        assert_eq!(found("2,4; (1, 9) 2", "| throughput, against std | 1.50 to 1.50 |"), [""; 0]);
        assert_eq!(
            found("2,4", "| throughput, against std | 1.60 to 3.1 |"),
            ["README.md:5: throughput, against std at (1, 9) is 1.50 to 3.1 in x, not 1.60 to 3.1"]
        );
    }

    #[test]
    fn the_document_has_two_tables_of_records() {
        let root = xtask::workspace::Workspace::load().unwrap().root;
        let text = fs::read_to_string(root.join(DOCUMENT)).unwrap();
        assert_eq!(text.matches("<!-- record ").count(), 2);
    }
}
