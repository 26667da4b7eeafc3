//! What a run of `scaling` leaves behind: one JSON record, and what is drawn from it.
//!
//! The record holds every trial, so all figures can be computed again; nothing in the tables or in
//! on the page comes from anywhere else. [`tables`] turns a record into the text on standard
//! output.
//!
//! # The record
//!
//! `schema` is `"ulocks-scaling/1"`. The number grows when a field changes its meaning or goes
//! away; new fields may appear under the same number, and readers ignore what they do not know.
//! Times are in the unit their name ends with.
//!
//! | field | content |
//! |---|---|
//! | `schema`, `version` | as above; the version of the package that wrote it |
//! | `took_s` | how long the run took |
//! | `mode` | `"full"`, `"quick"` or `"smoke"`; only a full run supports a claim |
//! | `resumed` | when the run went on after an interruption; absent if it never did |
//! | `ended` | why no more rounds were run: `"converged"`, `"rounds"`, `"budget"`, `"interrupted"` |
//! | `machine` | the machine's description, the load before the run, and the date |
//! | `options` | threads, workloads, pinning and the rule for repetition, as they were used |
//! | `locks` | name, kind (`"family"`, `"peer"`, `"baseline"`) and one line about each |
//! | `cells` | hold and non-hold time, threads, and whether acquisitions were timed |
//! | `trials` | round, lock, index into `cells`, and all that the trial measured; none in a [`kept`] record |
//! | `summary` | what [`summarise`] makes of the trials |
//!
//! A round is every (lock, cell) once; ratios are only ever taken between two trials of one round.
//! The last round is incomplete after an interrupt, and then only pairs that exist are compared.

mod answer;
mod chart;
mod compare;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kept;
mod looks;
mod summary;
pub(crate) mod svg;
mod text;
pub(crate) mod units;

pub use answer::answer;
pub(crate) use chart::of_workload as charts;
pub use compare::compare;
#[cfg(test)]
pub(crate) use looks::Look;
pub(crate) use looks::{Charts, lines_in, looks, style};
pub use summary::{Point, Score, Summary, Tally, WaitSummary, Worst, open_cells, summarise};
pub use text::tables;
pub(crate) use text::{Table, distinct};
pub use units::{clock, workload as describe};

use crate::run::machine::Machine;
use crate::workloads::Workload;
use crate::workloads::trial::TrialResult;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of the record that this code writes and reads.
pub const SCHEMA: &str = "ulocks-scaling/1";

/// Names of the two peers that ratios are taken to, as the registry has them.
pub const STD: &str = "std";

/// The second of them, in its current version.
pub const PARKING_LOT: &str = "parking_lot";

/// How much a run can support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A measurement.
    Full,
    /// `--quick`: few locks, short windows, few rounds.
    Quick,
    /// `--test` or `cargo test`: shows that the program works, measures nothing.
    Smoke,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Every interval is as narrow as was asked for.
    Converged,
    /// The greatest number of rounds was run. So it was if an old record does not say.
    #[default]
    Rounds,
    /// The next round would not fit into the time.
    Budget,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// One thing to measure of every lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Times inside and outside.
    #[serde(flatten)]
    pub workload: Workload,
    /// Threads that contend.
    pub threads: u32,
    /// Whether each acquisition is timed. The bare workload has one cell of each kind, others only
    /// a timed one.
    pub timed: bool,
}

impl Cell {
    /// One timed cell for each workload and thread count, and for the bare workload one without
    /// clock reads before it.
    pub fn all(workloads: &[Workload], threads: &[u32]) -> Vec<Self> {
        let mut cells = Vec::new();
        for &workload in workloads {
            for &threads in threads {
                if workload.is_bare() {
                    cells.push(Self { workload, threads, timed: false });
                }
                cells.push(Self { workload, threads, timed: true });
            }
        }
        cells
    }

    /// Whether this cell gives the throughput of its point (and not only its waits).
    pub fn is_main(self) -> bool {
        self.timed != self.workload.is_bare()
    }
}

/// What a lock is to this comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A lock of this family.
    Family,
    /// What people use today.
    Peer,
    /// No lock at all: a ceiling, never a winner.
    Baseline,
}

/// A lock that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its name in the registry.
    pub name: String,
    /// What it is to this comparison.
    pub kind: Kind,
    /// One line about it.
    pub about: String,
}

/// The options of the run, as they were used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Thread counts.
    pub threads: Vec<u32>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// `none`, `compact`, `scatter` or `node`.
    pub pin: String,
    /// Measured window of a trial.
    pub window_ms: u64,
    /// Not measured, before the window.
    pub warmup_ms: u64,
    /// Rounds that are always run.
    pub min_rounds: u32,
    /// Rounds that are never exceeded.
    pub max_rounds: u32,
    /// Half-width of the 95 % interval of throughput, relative, at which a cell is settled.
    pub precision: f64,
    /// Time meant for all trials together; none with `--full`.
    pub budget_s: Option<f64>,
    /// What did not fit into that time: thread counts and locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Iterations of the busy work in a microsecond, one constant for all trials.
    pub iterations_per_us: f64,
    /// Of the order of trials and of the workers' random numbers.
    pub seed: u32,
}

/// One trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// From 0.
    pub round: u32,
    /// The lock's name.
    pub lock: String,
    /// Index into the record's `cells`.
    pub cell: usize,
    /// What was measured.
    pub result: TrialResult,
}

/// All of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the package that wrote the record.
    pub version: String,
    /// Length of the run.
    pub took_s: f64,
    /// How much the run can support.
    pub mode: Mode,
    /// Why it ended.
    pub ended: Ended,
    /// When it went on after an interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// The machine it ran on, at the start of the run.
    pub machine: Machine,
    /// Options as used.
    pub options: Settings,
    /// Locks in the order of the tables.
    pub locks: Vec<Lock>,
    /// Cells in the order of the tables.
    pub cells: Vec<Cell>,
    /// Every trial in the order they ran.
    pub trials: Vec<Trial>,
    /// Computed from the trials.
    pub summary: Summary,
}

impl Report {
    /// Reads a record from JSON text; one that this code cannot read says why.
    pub fn from_json(text: &str) -> anyhow::Result<Self> {
        Self::from_value(serde_json::from_str(text).context("not a record of `scaling`: no field `schema`")?)
    }

    /// The same of a JSON value.
    pub fn from_value(value: serde_json::Value) -> anyhow::Result<Self> {
        let schema = value.get("schema").and_then(|schema| schema.as_str());
        let schema = schema.context("not a record of `scaling`: no field `schema`")?;
        if schema != SCHEMA {
            bail!("the record is `{schema}`; this program reads `{SCHEMA}`");
        }
        let report: Self =
            serde_json::from_value(value).with_context(|| format!("a damaged `{SCHEMA}` record"))?;
        if let Some(trial) = report.trials.iter().find(|t| t.cell >= report.cells.len()) {
            bail!("a damaged `{SCHEMA}` record: a trial names cell {} of {}", trial.cell, report.cells.len());
        }
        Ok(report)
    }

    /// Reads a record from a file, or the one of `scaling` in a file of [`kept`] records.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut records = kept::unpack(&text).with_context(|| format!("cannot use {}", path.display()))?;
        records.retain(|(name, _)| name.is_empty() || name == "scaling");
        let (_, record) = records.pop().with_context(|| format!("no scaling in {}", path.display()))?;
        Self::from_value(record).with_context(|| format!("cannot use {}", path.display()))
    }

    /// The record as JSON text, one trial a line.
    pub fn to_json(&self) -> String {
        one_trial_a_line(serde_json::to_value(self).expect("a record has string keys and finite numbers"))
    }

    /// Distinct workloads in the order of the tables.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut seen = Vec::new();
        for cell in &self.cells {
            if !seen.contains(&cell.workload) {
                seen.push(cell.workload);
            }
        }
        seen
    }

    /// Thread counts of a workload, in order.
    pub fn threads(&self, workload: Workload) -> Vec<u32> {
        let mut seen: Vec<u32> =
            self.cells.iter().filter(|c| c.workload == workload).map(|c| c.threads).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// Rounds in which at least one trial ended.
    pub fn rounds(&self) -> u32 {
        let of_points = self.summary.points.iter().map(|point| point.rounds as u32);
        self.trials.iter().map(|t| t.round + 1).chain(of_points).max().unwrap_or(0)
    }

    /// CPUs that the run could use.
    pub fn cpus(&self) -> u32 {
        u32::try_from(self.machine.cpus_allowed).unwrap_or(u32::MAX).max(1)
    }

    /// What the lock is to this comparison.
    pub fn kind(&self, lock: &str) -> Kind {
        self.locks.iter().find(|l| l.name == lock).map_or(Kind::Peer, |l| l.kind)
    }
}

/// A record as JSON text. Its `trials` take a line each.
pub(crate) fn one_trial_a_line(mut record: serde_json::Value) -> String {
    let trials = record.as_object_mut().and_then(|o| o.insert("trials".into(), "@trials@".into()));
    let lines: Vec<String> = trials
        .as_ref()
        .and_then(|t| t.as_array())
        .into_iter()
        .flatten()
        .map(|t| format!("    {t}"))
        .collect();
    let frame = serde_json::to_string_pretty(&record).expect("a JSON value prints");
    frame.replacen("\"@trials@\"", &format!("[\n{}\n  ]", lines.join(",\n")), 1) + "\n"
}

/// Where records and pages go: `ulocks-report` in the target directory this program was built in,
/// which is the nearest folder above it that cargo marked as a cache, else the one above
/// `release/deps`.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find out where this program lies")?;
    let marked = program.ancestors().skip(1).find(|folder| folder.join("CACHEDIR.TAG").is_file());
    let target = marked
        .or_else(|| program.ancestors().nth(3))
        .with_context(|| format!("cannot find the target directory above {}", program.display()))?;
    let folder = target.join("ulocks-report");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// The same, once it is known that files can be made there: a run that could not leave its record
/// would be lost.
pub(crate) fn writable_folder() -> anyhow::Result<PathBuf> {
    let folder = folder()?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&probe, "").with_context(|| format!("cannot write into {}", folder.display()))?;
    std::fs::remove_file(&probe).with_context(|| format!("cannot remove {}", probe.display()))?;
    Ok(folder)
}

/// What the files of a run are called that would be called `stem` if it had come to its end. An
/// interrupted run replaces no file of a complete one.
pub(crate) fn stem_of(stem: &str, ended: Ended) -> String {
    if ended == Ended::Interrupted { format!("{stem}-interrupted") } else { stem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_a_round_trip() {
        let report = fixture::plain(5);
        let text = report.to_json();
        let back = Report::from_json(&text).unwrap();
        assert!(back.to_json() == text, "not the same text");
        assert_eq!((back.locks, back.cells, back.options), (report.locks, report.cells, report.options));
        assert_eq!(back.trials.len(), report.trials.len());
        assert_eq!(back.trials[9].result.counts, report.trials[9].result.counts);
    }

    #[test]
    fn figures_can_be_computed_again_from_the_record() {
        let report = fixture::plain(7);
        let back = Report::from_json(&report.to_json()).unwrap();
        assert!(summarise(&back) == report.summary, "not the same figures");
    }

    #[test]
    fn what_is_not_a_record_is_refused_with_a_reason() {
        let refusal = |text: &str| format!("{:#}", Report::from_json(text).unwrap_err());
        assert!(refusal("{}").starts_with("not a record of `scaling`"));
        assert!(
            refusal("{\"schema\": \"ulocks-scaling/9\"}").contains("this program reads `ulocks-scaling/1`")
        );
        assert!(refusal("{\"schema\": \"ulocks-scaling/1\"}").starts_with("a damaged"));
        let mut report = fixture::plain(1);
        report.trials[0].cell = 99;
        assert!(refusal(&report.to_json()).contains("names cell 99 of 6"));
    }
}
