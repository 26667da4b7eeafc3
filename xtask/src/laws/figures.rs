//! The law of figures: what README.md says of `ulocks::Mutex` beside its peers follows from the
//! records.
//!
//! A table of ratios has a comment above it that names its record and the numbers of threads:
//!
//! ```text
//! <!-- record FILE; threads 2,4,8; (0, 0) 4,8 -->
//! ```
//!
//! The columns of the table are workloads, its rows are `WHAT, against PEER`. A cell is the range
//! over the numbers of threads. The words behind a workload replace the numbers for its column.

use anyhow::{Context, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "README.md";
const RECORDS: &str = "benches/results";
/// `ulocks::Mutex`, as the records name it.
const LOCK: &str = "throughput";

/// The cells that the records refute.
pub fn faults(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(DOCUMENT))?;
    check(&text, |file| {
        let path = root.join(RECORDS).join(file).with_extension("json");
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    })
}

fn check(text: &str, read: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((at, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- record ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let (file, threads) = mark.split_once("; threads ").with_context(|| format!("{DOCUMENT}:{at}"))?;
        let record: Value = serde_json::from_str(&read(file)?)?;
        let mut table = Vec::new();
        while let Some((number, row)) = lines.next_if(|(_, row)| row.is_empty() || row.starts_with('|')) {
            if !row.is_empty() && !row.contains("---") {
                table.push((number, row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()));
            }
        }
        let Some(((_, workloads), rows)) = table.split_first() else {
            bail!("{DOCUMENT}:{at}: no table follows");
        };
        for (number, cells) in rows {
            for (workload, cell) in workloads.iter().zip(cells).skip(1) {
                let threads = threads_of(threads, workload)?;
                let is = range(&record, cells[0], workload, &threads)
                    .with_context(|| format!("{DOCUMENT}:{number}: {} at {workload}", cells[0]))?;
                if is != *cell {
                    let what = format!("{} at {workload} is {is} in {file}, not {cell}", cells[0]);
                    faults.push(format!("{DOCUMENT}:{number}: {what}"));
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
fn range(record: &Value, row: &str, workload: &str, threads: &[u64]) -> anyhow::Result<String> {
    let (what, peer) = row.split_once(", against ").context("a row is `WHAT, against PEER`")?;
    let peer = peer.split(' ').next().unwrap_or_default();
    let times = workload.trim_matches(['(', ')']).split(", ");
    let times: Vec<u64> = times.map(|us| Ok(us.parse::<u64>()? * 1_000)).collect::<anyhow::Result<_>>()?;
    let points = record["summary"]["points"].as_array().context("no points")?;
    let point = |lock: &str, threads: u64| {
        let is = |point: &&Value| {
            let is_workload =
                times == [&point["hold_ns"], &point["non_hold_ns"]].map(|ns| ns.as_u64().unwrap_or(0));
            is_workload && point["lock"] == lock && point["threads"] == threads
        };
        points.iter().find(is).with_context(|| format!("no point of {lock} with {threads} threads"))
    };
    let by_std = |point: &Value| {
        if point["lock"] == "std" { Some(1.0) } else { point["cpu_vs_std"]["value"].as_f64() }
    };
    let ratio = |&threads: &u64| {
        let (own, other) = (point(LOCK, threads)?, point(peer, threads)?);
        let p999 = |point: &Value| point["waits"]["p999"]["median"].as_f64();
        match what {
            "throughput" => own[format!("vs_{peer}")]["value"].as_f64(),
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

    const RECORD: &str = r#"{"summary": {"points": [
        {"lock": "throughput", "hold_ns": 1000, "non_hold_ns": 9000, "threads": 2, "vs_std": {"value": 1.5},
         "cpu_vs_std": {"value": 0.8}, "waits": {"p999": {"median": 30}}},
        {"lock": "throughput", "hold_ns": 1000, "non_hold_ns": 9000, "threads": 4, "vs_std": {"value": 3.06},
         "cpu_vs_std": {"value": 1.2}, "waits": {"p999": {"median": 990}}},
        {"lock": "std", "hold_ns": 1000, "non_hold_ns": 9000, "threads": 2, "waits": {"p999": {"median": 10}}},
        {"lock": "std", "hold_ns": 1000, "non_hold_ns": 9000, "threads": 4, "waits": {"p999": {"median": 10}}}
    ]}}"#;

    fn found(mark: &str, row: &str) -> Vec<String> {
        let text =
            format!("<!-- record x; threads {mark} -->\n\n| ratio | (1, 9) |\n|---|---|\n{row}\n\nEnd.");
        check(&text, |_| Ok(RECORD.to_owned())).unwrap()
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
    fn the_readme_has_two_tables_of_records() {
        let root = xtask::workspace::Workspace::load().unwrap().root;
        let text = fs::read_to_string(root.join(DOCUMENT)).unwrap();
        assert_eq!(text.matches("<!-- record ").count(), 2);
        assert_eq!(faults(&root).unwrap(), [""; 0]);
    }
}
