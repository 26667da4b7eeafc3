//! The law of figures: what README.md and BENCHMARKS.md say of `ulocks::Mutex` beside its peers
//! follows from the records.
//!
//! A table of ratios has a comment above it that names its record and the numbers of threads:
//!
//! ```text
//! <!-- record DAY-MACHINE-scaling; threads 2,4,8; (0, 0) 4,8 -->
//! ```
//!
//! That is the record `scaling` in the file `DAY-MACHINE.json`, whose points are a table: a row
//! begins with the number of the shape that names its fields.
//!
//! The columns of the table are workloads, its rows are `WHAT, against PEER`. A cell is the range
//! over the numbers of threads. The words behind a workload replace the numbers for its column.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DOCUMENTS: [&str; 2] = ["README.md", "BENCHMARKS.md"];
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
        Ok(kept["records"][name]["summary"]["points"].clone())
    };
    let mut faults = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document))?;
        faults.extend(check(document, &text, read)?);
    }
    Ok(faults)
}

/// A point of the record: its fields by their names, `outer.inner` inside an object.
type Point = BTreeMap<String, Value>;

fn points(table: &Value) -> anyhow::Result<Vec<Point>> {
    let shapes: Vec<Vec<String>> = serde_json::from_value(table["shapes"].clone()).context("no shapes")?;
    let rows: Vec<Vec<Value>> = serde_json::from_value(table["rows"].clone()).context("no rows")?;
    let point = |row: Vec<Value>| {
        let shape = row.first().and_then(|at| shapes.get(at.as_u64()? as usize));
        let names = shape.context("a row has no shape")?.iter().cloned();
        Ok(names.zip(row.into_iter().skip(1)).collect())
    };
    rows.into_iter().map(point).collect()
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
        let record = points(&read(file).with_context(|| format!("{document}:{at}: {file}"))?)?;
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
fn range(record: &[Point], row: &str, workload: &str, threads: &[u64]) -> anyhow::Result<String> {
    let (what, peer) = row.split_once(", against ").context("a row is `WHAT, against PEER`")?;
    let peer = peer.split(' ').next().unwrap_or_default();
    let times = workload.trim_matches(['(', ')']).split(", ");
    let times: Vec<u64> = times.map(|us| Ok(us.parse::<u64>()? * 1_000)).collect::<anyhow::Result<_>>()?;
    let point = |lock: &str, threads: u64| {
        let is = |point: &&Point| {
            let is_workload =
                times == ["hold_ns", "non_hold_ns"].map(|name| point[name].as_u64().unwrap_or(0));
            is_workload && point["lock"] == lock && point["threads"] == threads
        };
        record.iter().find(is).with_context(|| format!("no point of {lock} with {threads} threads"))
    };
    let number = |point: &Point, name: &str| point.get(name)?.as_f64();
    let by_std = |point: &Point| {
        if point["lock"] == "std" { Some(1.0) } else { number(point, "cpu_vs_std.value") }
    };
    let ratio = |&threads: &u64| {
        let (own, other) = (point(LOCK, threads)?, point(peer, threads)?);
        let p999 = |point: &Point| number(point, "waits.p999.median");
        match what {
            "throughput" => number(own, &format!("vs_{peer}.value")),
            "CPU time per operation" => by_std(own).zip(by_std(other)).map(|(own, other)| own / other),
            "p99.9 wait" => p999(own).zip(p999(other)).map(|(own, other)| own / other),
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

    const RECORD: &str = r#"{"shapes": [
        ["lock", "hold_ns", "non_hold_ns", "threads", "waits.p999.median", "vs_std.value", "cpu_vs_std.value"],
        ["lock", "hold_ns", "non_hold_ns", "threads", "waits.p999.median"]
    ], "rows": [
        [0, "throughput", 1000, 9000, 2, 30, 1.5, 0.8],
        [0, "throughput", 1000, 9000, 4, 990, 3.06, 1.2],
        [1, "std", 1000, 9000, 2, 10],
        [1, "std", 1000, 9000, 4, 10]
    ]}"#;

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
    fn the_documents_have_two_tables_of_records() {
        let root = xtask::workspace::Workspace::load().unwrap().root;
        let marks =
            |document| fs::read_to_string(root.join(document)).unwrap().matches("<!-- record ").count();
        assert_eq!(DOCUMENTS.map(marks).iter().sum::<usize>(), 2);
    }
}
