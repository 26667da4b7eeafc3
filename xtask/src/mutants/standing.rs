//! How far the audits have come: the verdicts on record that belong to the present code.
//!
//! A verdict belongs to the code of the file that the mutant changes. The records are in
//! `verification.jsonl`, so a clean clone has them. `target/mutants` has the verdicts of the last
//! runs, from which [`collect`] adds to the records.

use super::audit::Store;
use super::logic;
use super::spec::Mutant;
use super::verdict::Verdict;
use super::weaken::{self, Weakening};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use xtask::workspace::Workspace;

/// A verdict on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audited {
    /// The day.
    pub date: String,
    /// The hash of the code of the file.
    pub code: String,
    /// What came of it.
    pub verdict: Verdict,
}

/// The verdicts on record, by the keys of the weakenings, or of the planted bugs.
pub type Verdicts = BTreeMap<String, Audited>;

/// Whether the tests of `mutant` have reported it on the present code of its file.
pub fn is_reported(mutant: &Mutant, records: &Verdicts) -> bool {
    records.get(&mutant.key()).is_some_and(|record| record.code == mutant.code)
}

/// The present weakenings by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How many a model reports.
    pub caught: usize,
    /// What no model reports in time: the file and the change.
    pub survived: Vec<String>,
    /// How many have a comment that says why no model can report them.
    pub explained: usize,
    /// How many have a verdict, but their file has changed since.
    pub stale: usize,
    /// How many were never audited.
    pub never: usize,
    /// The oldest day of a verdict that counts.
    pub since: Option<String>,
}

impl Standing {
    /// How many there are that no comment explains.
    pub fn all(&self) -> usize {
        self.caught + self.survived.len() + self.stale + self.never
    }
}

/// The verdicts on record of `weakenings`.
pub fn standing(weakenings: &[Weakening], records: &Verdicts) -> Standing {
    let mut standing = Standing::default();
    for weakening in weakenings {
        let record = records.get(&weakening.key);
        match record.filter(|record| record.code == weakening.code) {
            _ if weakening.explained.is_some() => standing.explained += 1,
            None if record.is_some() => standing.stale += 1,
            None => standing.never += 1,
            Some(record) => {
                match record.verdict {
                    Verdict::Caught => standing.caught += 1,
                    verdict => {
                        // Without the line, which changes with every comment above it.
                        let (place, change) = weakening.name.split_once(' ').unwrap_or_default();
                        let file = place.split(':').next().unwrap_or_default();
                        standing.survived.push(format!("`{file}`: {change}: {verdict}"));
                    }
                }
                let is_older = standing.since.as_ref().is_none_or(|since| record.date < *since);
                standing.since = if is_older { Some(record.date.clone()) } else { standing.since };
            }
        }
    }
    standing
}

/// Adds the verdicts that the runs in this target directory found on the present code, and forgets
/// mutants that are gone, and explained orderings.
///
/// # Errors
/// If an audit runs at the moment, or a file cannot be read.
pub fn collect(
    workspace: &Workspace,
    (weakenings, orderings): (&[Weakening], &mut Verdicts),
    (mutants, bugs): (&[Mutant], &mut Verdicts),
    today: &str,
) -> anyhow::Result<()> {
    let known: BTreeSet<_> = weakenings.iter().filter(|weakening| weakening.explained.is_none()).collect();
    let keys: BTreeSet<_> = known.iter().map(|weakening| &weakening.key).collect();
    orderings.retain(|key, _| keys.contains(key));
    let keys: BTreeSet<_> = mutants.iter().map(Mutant::key).collect();
    bugs.retain(|key, _| keys.contains(key));
    if !workspace.target().join("mutants/results.jsonl").is_file() {
        return Ok(());
    }
    let store = Store::open(workspace)?;
    let note = |records: &mut Verdicts, key: String, code: &str, verdict| {
        let is_known = |old: &Audited| (old.code.as_str(), old.verdict) == (code, verdict);
        if !records.get(&key).is_some_and(is_known) {
            records.insert(key, Audited { date: today.to_owned(), code: code.to_owned(), verdict });
        }
    };
    for weakening in known {
        if let Some(verdict) = weaken::verdict(&store, weakening) {
            note(orderings, weakening.key.clone(), &weakening.code, verdict);
        }
    }
    for mutant in mutants {
        if let Some(verdict) = logic::verdict(&store, mutant) {
            note(bugs, mutant.key(), &mutant.code, verdict);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::spec;

    fn weakening(key: &str, explained: bool) -> Weakening {
        Weakening {
            value: "1:x".into(),
            name: format!("src/{key}.rs:7 Acquire -> Relaxed"),
            key: key.into(),
            file: format!("src/{key}.rs"),
            package: "p".into(),
            code: "now".into(),
            explained: explained.then(|| "why".into()),
        }
    }

    #[test]
    fn a_bug_is_reported_as_long_as_neither_it_nor_the_code_changes() {
        let [one, other] = &spec::PLANTED[..2] else { panic!("there are planted bugs") };
        assert_ne!(one.code, other.code);
        let record = |code: &str| {
            let audited = Audited { date: String::new(), code: code.into(), verdict: Verdict::Caught };
            Verdicts::from([(one.key(), audited)])
        };
        assert!(is_reported(one, &record(&one.code)));
        assert!(!is_reported(one, &record("before")) && !is_reported(other, &record(&other.code)));
    }

    #[test]
    fn every_ordering_of_today_counts_and_a_verdict_on_other_code_does_not() {
        let record = |code: &str, verdict| Audited { date: "2026-11-23".into(), code: code.into(), verdict };
        let records = Verdicts::from([
            ("caught".into(), record("now", Verdict::Caught)),
            ("late".into(), record("now", Verdict::OutOfTime)),
            ("stale".into(), record("before", Verdict::Caught)),
            ("explained".into(), record("now", Verdict::Survived)),
            ("gone".into(), record("now", Verdict::Caught)),
        ]);
        let weakenings: Vec<_> = ["caught", "late", "stale", "explained", "new"]
            .map(|key| weakening(key, key == "explained"))
            .into();
        let standing = standing(&weakenings, &records);
        let survived = vec!["`src/late.rs`: Acquire -> Relaxed: OUT OF TIME".to_owned()];
        let since = Some("2026-11-23".to_owned());
        assert_eq!(standing, Standing { caught: 1, survived, explained: 1, stale: 1, never: 1, since });
        assert_eq!(standing.all(), 4);
    }
}
