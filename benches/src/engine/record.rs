//! What a run of a row leaves behind: for each cell and subject the figures of every round.
//!
//! # The record
//!
//! `schema` is `"ulocks-bench/1"`. The number grows when a field changes its meaning or goes away.
//! A line of `lines` is a cell, a subject, and for each figure a list with the value of each round,
//! `null` where it has none. Figures are named in [`figures`](super::figures). Nothing in tables,
//! answers and pages comes from anywhere else.

use super::cell::{Cell, Kind, Subject};
use super::figures::{Figure, Unit};
use crate::run::machine::Machine;
use crate::statistics::rounds::{Estimate, Ratio, log_t, mean_ratio, middle, modes, range_ratio};
use crate::workloads::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the record that this code writes and reads.
pub const SCHEMA: &str = "ulocks-bench/1";

/// How much a run can support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A measurement.
    #[default]
    Full,
    /// `--quick`: short windows, few rounds.
    Quick,
    /// `--test` or `cargo test`: shows that the program works, measures nothing.
    Smoke,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All rounds of the plan were run.
    #[default]
    Rounds,
    /// The time was over.
    Budget,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// The record of a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// The row's name, such as `scaling`.
    pub row: String,
    /// The command that was run.
    pub command: String,
    /// How much it can support.
    pub mode: Mode,
    /// Why it ended.
    pub ended: Ended,
    /// The machine, the load before the run, and the date.
    pub machine: Machine,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// The measured window of a trial.
    pub window_ms: u64,
    /// Rounds that were planned.
    pub rounds: u32,
    /// Where workers ran.
    pub pin: String,
    /// What the plan left out, in words; empty if nothing.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The subjects.
    pub subjects: Vec<Subject>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// What was measured, a line for each cell and subject.
    pub lines: Vec<Line>,
}

/// A subject in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Index into `cells`.
    pub cell: usize,
    /// The subject.
    pub subject: String,
    /// The value of each round by the name of the figure.
    pub rounds: BTreeMap<String, Vec<Option<f64>>>,
}

/// What a trial of one subject gives: figures by name.
pub type Outcome = BTreeMap<String, f64>;

/// A figure of a subject in a cell, over rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The geometric mean of a rate, the median of anything else.
    pub value: f64,
    /// Its 95 % interval; one round has none.
    pub interval: Option<(f64, f64)>,
    /// Whether that is a range, which covers less than 95 %.
    pub is_range: bool,
    /// If a rate has two modes, the slower and the faster; then `value` is in no trial.
    pub modes: Option<(f64, f64)>,
}

impl Record {
    /// The line of `subject` in the cell with this index.
    pub fn line(&self, cell: usize, subject: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.cell == cell && line.subject == subject)
    }

    /// What `subject` is to the comparison.
    pub fn kind(&self, subject: &str) -> Option<Kind> {
        Some(self.subjects.iter().find(|entry| entry.name == subject)?.kind)
    }

    /// Headings of the sections, each once, in their order.
    pub fn sections(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.cells.iter().map(|cell| cell.section.as_str()).filter(|section| seen.insert(*section)).collect()
    }

    /// Indexes of the cells of a section.
    pub fn cells_of(&self, section: &str) -> impl Iterator<Item = usize> {
        self.cells.iter().enumerate().filter(move |(_, cell)| cell.section == section).map(|(at, _)| at)
    }

    /// The index of the cell with this scenario: no two cells of a row have the same today.
    pub fn cell_of(&self, scenario: &Scenario) -> Option<usize> {
        self.cells.iter().position(|cell| cell.scenario == *scenario)
    }

    /// The index of the cell with this label in a section. Labels of promises are not unique.
    pub fn cell(&self, section: &str, label: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.section == section && cell.label == label)
    }

    /// Rounds of which something is known.
    pub fn rounds_done(&self) -> usize {
        self.lines.iter().flat_map(|line| line.rounds.values().map(Vec::len)).max().unwrap_or(0)
    }

    /// The figure of `subject` in a cell.
    pub fn measured(&self, cell: usize, subject: &str, figure: &str) -> Option<Measured> {
        self.line(cell, subject)?.measured(figure)
    }

    /// The figure of `mine` by that of `other`, round by round.
    pub fn ratio(&self, mine: (usize, &str), other: (usize, &str), figure: &str) -> Option<Ratio> {
        let [mine, other] = [self.line(mine.0, mine.1)?, self.line(other.0, other.1)?];
        mine.ratio(other, figure)
    }

    /// The peer whose figure in the cell is best.
    pub fn best_peer(&self, cell: usize, figure: &str) -> Option<&str> {
        self.best(cell, figure, |kind| kind == Kind::Peer)
    }

    /// The subject of a `wanted` kind whose figure in the cell is best.
    pub fn best(&self, cell: usize, figure: &str, wanted: impl Fn(Kind) -> bool) -> Option<&str> {
        let sign = if Figure::find(figure)?.more_is_better { 1.0 } else { -1.0 };
        let of_kind = self.subjects.iter().filter(|subject| wanted(subject.kind));
        let value = |name: &str| self.line(cell, name)?.typical(figure).map(|value| sign * value);
        let known = of_kind.filter_map(|subject| Some((subject.name.as_str(), value(&subject.name)?)));
        Some(known.max_by(|a, b| a.1.total_cmp(&b.1))?.0)
    }
}

impl Line {
    /// The values of a figure in the rounds that have it.
    pub fn values(&self, figure: &str) -> Vec<f64> {
        self.rounds.get(figure).into_iter().flatten().filter_map(|value| *value).collect()
    }

    /// A figure over rounds.
    pub fn measured(&self, figure: &str) -> Option<Measured> {
        let values = self.values(figure);
        if values.is_empty() {
            return None;
        }
        let unit = Figure::find(figure)?.unit;
        let Estimate { value, interval, is_range } = match unit {
            // What must never be exceeded is not judged by most rounds.
            _ if figure == "recovery-max" => {
                let greatest = values.iter().copied().fold(0.0, f64::max);
                Estimate { value: greatest, interval: Some((greatest, greatest)), is_range: false }
            }
            Unit::PerSecond => log_t(&values),
            _ => middle(&values),
        };
        let modes = modes(&values).filter(|_| unit == Unit::PerSecond);
        Some(Measured { value, interval, is_range, modes })
    }

    /// One number to compare subjects by: the value, or the mode of most rounds.
    pub fn typical(&self, figure: &str) -> Option<f64> {
        let measured = self.measured(figure)?;
        let Some((slow, fast)) = measured.modes else { return Some(measured.value) };
        let values = self.values(figure);
        let in_fast = values.iter().filter(|&value| value / slow > fast / value).count();
        Some(if 2 * in_fast > values.len() { fast } else { slow })
    }

    /// This line's figure by that of `other`, round by round.
    pub fn ratio(&self, other: &Self, figure: &str) -> Option<Ratio> {
        let [mine, theirs] = [self, other].map(|line| line.rounds.get(figure));
        let pairs = mine?.iter().zip(theirs?).filter_map(|(mine, other)| Some(((*mine)?, (*other)?)));
        let ratios: Vec<f64> = pairs.filter(|pair| pair.1 > 0.0).map(|(mine, other)| mine / other).collect();
        let two = Figure::find(figure)?.unit == Unit::PerSecond
            && [self, other].iter().any(|line| modes(&line.values(figure)).is_some());
        if two { range_ratio(&ratios) } else { mean_ratio(&ratios) }
    }
}
