//! What is measured: a cell is a scenario with its place in the tables.

use crate::subjects::{condvars, locks, rwlocks, semaphores, tasks};
use crate::workloads::Scenario;
use anyhow::Result;
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

impl Subject {
    /// The subject called `name` that is put through this scenario.
    ///
    /// # Errors
    /// If the registry that the scenario draws from does not know it.
    pub fn of(scenario: &Scenario, name: &str) -> Result<Self> {
        macro_rules! find {
            ($registry:ident) => {{
                let entry = $registry::Entry::find(name)?;
                (entry.name, entry.about, entry.family)
            }};
        }
        let (name, about, family) = match scenario {
            Scenario::Readers(_) => find!(rwlocks),
            Scenario::Semaphores(_) | Scenario::Sets(_) => find!(semaphores),
            Scenario::Condvars(_) => find!(condvars),
            Scenario::Tasks(_) => find!(tasks),
            _ => find!(locks),
        };
        let kind = match (name, family) {
            ("none" | "floor" | "arc-swap" | "plain", _) => Kind::Baseline,
            (_, true) => Kind::Family,
            (_, false) => Kind::Peer,
        };
        Ok(Self { name: name.into(), kind, about: about.into() })
    }

    /// The names of all registries.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = locks::Entry::all().iter().map(|entry| entry.name).collect();
        names.extend(rwlocks::Entry::all().iter().map(|entry| entry.name));
        names.extend(semaphores::Entry::all().iter().map(|entry| entry.name));
        names.extend(condvars::Entry::all().iter().map(|entry| entry.name));
        names.extend(tasks::Entry::all().iter().map(|entry| entry.name));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }
}

/// A cell and the subjects that are put through it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The cell.
    pub cell: Cell,
    /// Names of subjects. All of them run in one process if the scenario says so.
    pub subjects: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lock_of_the_family_is_a_peer() {
        let of = |name| Subject::of(&Scenario::Handoff, name).unwrap().kind;
        assert_eq!(
            ["none", "std", "unfair", "mcs-park"].map(of),
            [Kind::Baseline, Kind::Peer, Kind::Family, Kind::Peer]
        );
        for entry in locks::Entry::all().iter().filter(|entry| entry.about.starts_with("ulocks ")) {
            assert_eq!(of(entry.name), Kind::Family, "{}", entry.name);
        }
        let error = Subject::of(&Scenario::Handoff, "lockless").unwrap_err().to_string();
        assert!(error.starts_with("unknown lock 'lockless'; allowed: "), "{error}");
    }
}
