//! What BENCHMARKS.md says of `ulocks::Mutex` beside its peers follows from the records.
//!
//! A table of ratios has a comment above it that names its record and the numbers of threads:
//!
//! ```text
//! <!-- record DAY-MACHINE-scaling; threads 2,4,8; (0, 0) 4,8 -->
//! ```
//!
//! That is the record `scaling` in the file `DAY-MACHINE.json`. The columns of the table are
//! workloads, its rows are `WHAT, against PEER`. A cell is the range over the numbers of threads.
//! The words behind a workload replace the numbers for its column.

use super::{fixture, kept};
use crate::engine::record::Record;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// `ulocks::Mutex`, as the records name it.
const LOCK: &str = "throughput";

/// The record of that name, from the files in `folder`.
fn read(folder: &Path, name: &str) -> Result<Record> {
    let of = |(at, _)| (folder.join(&name[..at]).with_extension("json"), &name[at + 1..]);
    let mut places = name.rmatch_indices('-').map(of);
    let (file, row) = places.find(|(file, _)| file.is_file()).context("no file has this record")?;
    kept::read(&file)?.into_iter().find(|record| record.row == row).context("the file has no such row")
}

/// The cells of tables that the records refute.
fn faults(text: &str, read: impl Fn(&str) -> Result<Record>) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((at, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- record ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let (name, threads) = mark.split_once("; threads ").with_context(|| format!("line {at}"))?;
        let record = read(name).with_context(|| format!("line {at}: {name}"))?;
        let mut table = Vec::new();
        while let Some((number, row)) = lines.next_if(|(_, row)| row.is_empty() || row.starts_with('|')) {
            if !row.is_empty() && !row.contains("---") {
                table.push((number, row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()));
            }
        }
        let Some(((_, workloads), rows)) = table.split_first() else {
            bail!("line {at}: no table follows");
        };
        for (number, cells) in rows {
            for (workload, cell) in workloads.iter().zip(cells).skip(1) {
                let what = format!("line {number}: {} at {workload}", cells[0]);
                let is = range(&record, cells[0], workload, &threads_of(threads, workload)?)
                    .with_context(|| what.clone())?;
                if is != *cell {
                    faults.push(format!("{what} is {is} in {name}, not {cell}"));
                }
            }
        }
    }
    Ok(faults)
}

/// The numbers of threads for a column.
fn threads_of(mark: &str, workload: &str) -> Result<Vec<f64>> {
    let mut parts = mark.split("; ");
    let all = parts.next().unwrap_or_default();
    let own = parts.find_map(|part| part.strip_prefix(workload));
    own.unwrap_or(all).trim().split(',').map(|number| Ok(number.parse()?)).collect()
}

/// The range of a ratio of the record over numbers of threads, as it is written.
fn range(record: &Record, row: &str, workload: &str, threads: &[f64]) -> Result<String> {
    let (what, peer) = row.split_once(", against ").context("a row is `WHAT, against PEER`")?;
    let peer = peer.split(' ').next().unwrap_or_default();
    let section = format!("{workload} us");
    let ratio = |&threads: &f64| {
        let cell = record.cells_of(&section).find(|&cell| record.cells[cell].x == Some(threads));
        let line = |subject| {
            let line = cell.and_then(|cell| record.line(cell, subject));
            line.with_context(|| format!("nothing of {subject} with {threads} threads"))
        };
        let (own, other) = (line(LOCK)?, line(peer)?);
        let by_rounds = |figure| Some(own.ratio(other, figure)?.value);
        match what {
            "throughput" => by_rounds("rate"),
            "CPU time per operation" => by_rounds("cpu"),
            "p99.9 wait" => {
                let [own, other] = [own, other].map(|line| line.measured("wait-p99.9"));
                own.zip(other).map(|(own, other)| own.value / other.value)
            }
            _ => bail!("no record has `{what}`"),
        }
        .with_context(|| format!("no figure with {threads} threads"))
    };
    let ratios: Vec<f64> = threads.iter().map(ratio).collect::<Result<_>>()?;
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

#[test]
fn the_tables_of_the_document_follow_from_the_records() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(benches.join("../BENCHMARKS.md")).unwrap();
    assert_eq!(text.matches("<!-- record ").count(), 2);
    assert_eq!(faults(&text, |name| read(&benches.join("results"), name)).unwrap(), [""; 0]);
}

#[test]
fn a_cell_that_the_record_refutes_is_named() {
    let read = |_: &str| {
        let mut record = fixture::record(2, |figure, subject, threads, round| match (figure, subject) {
            ("rate", "even") if threads == 4.0 => 3.06,
            // Of two modes, the median.
            ("rate", "even") => [1.0, 2.6][round],
            ("wait-p99.9", "even") => [30.0, 990.0][round],
            ("cpu", "even") => 8.0 + threads,
            (_, _) => [1.0, 10.0][usize::from(figure != "rate")],
        });
        record.lines.retain_mut(|line| {
            line.subject = line.subject.replace("even", LOCK);
            line.subject != "usync"
        });
        Ok(record)
    };
    let found = |mark: &str, row: &str| {
        let text =
            format!("<!-- record x; threads {mark} -->\n\n| ratio | (3, 7) |\n|---|---|\n{row}\n\nEnd.");
        faults(&text, read)
    };
    assert_eq!(found("2,4", "| throughput, against std | 1.80 to 3.1 |").unwrap(), [""; 0]);
    assert_eq!(found("2,4", "| CPU time per operation, against std | 1.00 to 1.20 |").unwrap(), [""; 0]);
    assert_eq!(found("4", "| p99.9 wait, against std | 51 to 51 |").unwrap(), [""; 0]);
    assert_eq!(found("2,4; (3, 7) 2", "| throughput, against std | 1.80 to 1.80 |").unwrap(), [""; 0]);
    assert_eq!(
        found("2,4", "| throughput, against std | 1.60 to 3.1 |").unwrap(),
        ["line 5: throughput, against std at (3, 7) is 1.80 to 3.1 in x, not 1.60 to 3.1"]
    );
    assert!(found("2", "| throughput, against usync | 1.00 to 1.00 |").is_err());
}
