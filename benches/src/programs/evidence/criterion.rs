//! What the criterion benches have measured: the medians that criterion keeps beside the records.

use super::{Found, Shown, Source};
use crate::report::{Table, units};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The criterion benches as one program.
pub(super) const SOURCE: Source = Source {
    name: "criterion",
    schema: "",
    about: "one operation at a time: uncontended, hand-over, readers, sets",
    command: "cargo bench --bench no_contention --bench handoff --bench contended --bench readers --bench sets",
    read: |_| anyhow::bail!("criterion leaves no record of this kind"),
    beside: Vec::new,
};

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    confidence_interval: Interval,
    point_estimate: f64,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

/// The newest estimates that lie beside a folder of records, if there are any.
pub(super) fn find(folder: &Path) -> Option<Found> {
    let folder = folder.parent()?.join("criterion");
    let mut results = Vec::new();
    newest(&folder, &mut results);
    results.sort();
    let shown = table(&results).map(|text| Shown {
        cpus: "the machine of this folder".into(),
        machine: "each figure of its last run; criterion keeps no machine and no date".into(),
        date: String::new(),
        run: "as criterion left it".into(),
        measures: true,
        text,
        beside: Vec::new(),
        charts: None,
    });
    (!results.is_empty()).then(|| Found { file: "criterion".into(), source: &SOURCE, shown })
}

/// Folders with the name `new` that hold estimates. What cannot be read is not there.
fn newest(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("new") && path.join("estimates.json").is_file() {
            found.push(path);
        } else if path.is_dir() {
            newest(&path, found);
        }
    }
}

fn table(results: &[PathBuf]) -> Result<String> {
    let mut table = Table::new(&[0], &["benchmark", "median", "from", "to"]);
    for folder in results {
        let Benchmark { full_id } = read(&folder.join("benchmark.json"))?;
        let Estimates { median } = read(&folder.join("estimates.json"))?;
        let Estimate { point_estimate, confidence_interval: interval } = median;
        let times = [point_estimate, interval.lower_bound, interval.upper_bound].map(units::time);
        table.row([full_id].into_iter().chain(times).collect());
    }
    let mut text = String::from("Time of an iteration, and the 95 % interval of the median\n\n");
    table.print(&mut text);
    Ok(text)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let json = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&json).with_context(|| format!("{} is damaged", path.display()))
}
