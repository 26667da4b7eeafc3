//! What is measured: a cell is a scenario with its place in the tables.

use crate::workloads::Scenario;
use serde::{Deserialize, Serialize};

/// A scenario and its place in tables and charts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The heading under which it stands, such as `(3, 7) us`: a table and a chart for each.
    pub section: String,
    /// What tells it from the other cells of its section, such as `8 threads`.
    pub label: String,
    /// Its place on the horizontal axis of the section's chart, if it has one: `8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// What subjects are put through.
    pub scenario: Scenario,
}

/// What a subject is to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A lock of this family, also one that is measured only when it is asked for.
    Family,
    /// What people use today, or a probe that is no lock of this family.
    Peer,
    /// No lock at all: a ceiling, never a winner.
    Baseline,
}

/// A subject that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Its name in the registry of its kind.
    pub name: String,
    /// What it is to the comparison.
    pub kind: Kind,
    /// One line about it.
    pub about: String,
}

/// A cell and the subjects that are put through it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The cell.
    pub cell: Cell,
    /// Names of subjects. All of them run in one process if the scenario says so.
    pub subjects: Vec<String>,
}
