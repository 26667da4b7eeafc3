//! The figures of the last run of each test: `verification.jsonl`, a line for each test.
//!
//! The file is committed. So the table can be generated without a run, and a test that was not run
//! again keeps its figures with their date. Each record has the hash of the code that it speaks of
//! (`code.rs`). If the code has changed since, the record is stale, and the table says so. The
//! verdicts on mutants are kept in the same way.

use super::map::{Check, Tool};
use crate::code::Codes;
use crate::mutants::{Audited, Verdicts};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use xtask::tools::today;
use xtask::workspace::Workspace;

const FILE: &str = "xtask/records/verification.jsonl";

/// The figures of a run that passed. A test that fails has no record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// The day.
    pub date: String,
    /// The hash of the code that it speaks of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// How long it ran, if it ran alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The most threads of an execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Executions of models that were explored exhaustively, within their bound.
    #[serde(skip_serializing_if = "is_zero")]
    pub all: u64,
    /// Executions of models that were sampled.
    #[serde(skip_serializing_if = "is_zero")]
    pub sampled: u64,
    /// The bound of loom's search, in loom's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The schedules of Miri.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Bug {
        bug: String,
        #[serde(flatten)]
        audited: Audited,
    },
    Ordering {
        ordering: String,
        #[serde(flatten)]
        audited: Audited,
    },
    Test {
        test: String,
        figures: Figures,
    },
}

/// Whether there is a record, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// There is none: the test was never run, or it failed.
    Never,
    /// It is of other code.
    Stale,
    /// It is of the present code.
    Today,
}

/// All records.
#[derive(Debug, Default, PartialEq)]
pub struct Records {
    tests: BTreeMap<String, Figures>,
    /// The verdicts on weakened orderings.
    pub orderings: Verdicts,
    /// The verdicts on planted bugs.
    pub bugs: Verdicts,
}

impl Records {
    /// Reads the file.
    pub fn load(workspace: &Workspace) -> anyhow::Result<Self> {
        let path = path(workspace);
        let text = if path.exists() {
            fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?
        } else {
            String::new()
        };
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut records = Self::default();
        for (nth, line) in (1..).zip(text.lines()) {
            match serde_json::from_str(line).with_context(|| format!("{FILE}:{nth}"))? {
                Line::Bug { bug, audited } => _ = records.bugs.insert(bug, audited),
                Line::Ordering { ordering, audited } => _ = records.orderings.insert(ordering, audited),
                Line::Test { test, figures } => _ = records.tests.insert(test, figures),
            }
        }
        Ok(records)
    }

    /// Writes the file.
    pub fn save(&self, workspace: &Workspace) -> anyhow::Result<()> {
        fs::write(path(workspace), self.text()?).with_context(|| format!("cannot write {FILE}"))
    }

    fn text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for (bug, audited) in &self.bugs {
            let line = Line::Bug { bug: bug.clone(), audited: audited.clone() };
            text += &(serde_json::to_string(&line)? + "\n");
        }
        for (ordering, audited) in &self.orderings {
            let line = Line::Ordering { ordering: ordering.clone(), audited: audited.clone() };
            text += &(serde_json::to_string(&line)? + "\n");
        }
        for (test, figures) in &self.tests {
            let line = Line::Test { test: test.clone(), figures: figures.clone() };
            text += &(serde_json::to_string(&line)? + "\n");
        }
        Ok(text)
    }

    /// The figures of the last run of `check`.
    pub fn of(&self, check: &Check) -> Option<&Figures> {
        self.tests.get(&key(check))
    }

    /// Whether `check` has a record, and whether that is of the present code.
    pub fn state(&self, check: &Check, codes: &Codes) -> State {
        match self.of(check) {
            None => State::Never,
            Some(figures) if figures.code == codes.of(&check.package) => State::Today,
            Some(_) => State::Stale,
        }
    }

    /// Records the figures of `check`. None means that it failed: then its older figures are
    /// deleted, since they would say that it passes.
    pub fn note(&mut self, check: &Check, figures: Option<Figures>) {
        match figures {
            Some(figures) => _ = self.tests.insert(key(check), figures),
            None => _ = self.tests.remove(&key(check)),
        }
    }

    /// Forgets the tests that are not among `checks`.
    pub fn retain(&mut self, checks: &[&Check]) {
        let keys: Vec<_> = checks.iter().map(|check| key(check)).collect();
        self.tests.retain(|test, _| keys.contains(test));
    }
}

impl Figures {
    /// The figures of a run of `tool` that printed `output`.
    pub fn read(tool: Tool, output: &str, seconds: Option<f64>) -> Self {
        // More digits would differ in every run, and would mean nothing to a reader.
        let seconds = seconds.map(|seconds| (seconds * 10.0).ceil() / 10.0);
        let mut figures = Self { date: today(), seconds, ..Self::default() };
        for line in output.lines() {
            match tool {
                Tool::Loom | Tool::Vm => figures.read_report(line),
                Tool::Fuzz => {
                    let mut words = line.strip_prefix("Done ").unwrap_or_default().split(' ');
                    figures.sampled += words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
                }
                _ => {}
            }
        }
        figures
    }

    /// Reads the line that `explore` prints, in the words of either world.
    fn read_report(&mut self, line: &str) {
        let Some((before, after)) = line.split_once(" executions") else { return };
        let mut words = before.rsplit(' ');
        let Some(count) = words.next().and_then(|count| count.parse::<u64>().ok()) else { return };
        let within = after.split_once('(').map_or("", |(_, within)| within.trim_end_matches(')'));
        let (bound, is_loom) = match within.split_once(", ") {
            Some((bound, grade)) if grade.ends_with(" futex") => (bound, true),
            _ => (within, false),
        };
        if is_loom {
            self.all += count;
            let known = self.within.get_or_insert_default();
            if !known.split("; ").any(|known| known == bound) {
                *known += if known.is_empty() { "" } else { "; " };
                *known += bound;
            }
        } else if words.next() == Some("all") {
            self.all += count;
        } else {
            self.sampled += count;
        }
        let threads =
            after.split_once(" of up to ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        self.threads = self.threads.max(threads);
    }
}

/// The name of a test in the file.
fn key(check: &Check) -> String {
    let Check { tool, package, target, test } = check;
    format!("{tool} {package} {target} {test}").trim_end().to_owned()
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::verdict::Verdict;

    fn check(test: &str) -> Check {
        Check { tool: Tool::Vm, package: "p".into(), target: "vm".into(), test: test.into() }
    }

    #[test]
    fn the_reports_of_both_worlds_are_summed() {
        let vm = "x.rs:6: all 465 executions and 79 redundant of up to 2 threads, 12744 steps (exhaustive)\n\
                  x.rs:7: 5333 executions of up to 3 threads, 123986 steps (random, seed 1)\n\
                  x.rs:7: 1000 executions of up to 16 threads, 139178 steps (random, seed 1)\ntest m ... ok";
        let figures = Figures::read(Tool::Vm, vm, Some(1.96));
        assert_eq!((figures.all, figures.sampled, figures.threads), (465, 6333, Some(16)));
        assert_eq!((figures.seconds, figures.within), (Some(2.0), None));
        let loom = "x.rs:6:9: 120 executions, 4 masks (at most 2 preemptions, Exact futex)\n\
                    x.rs:7:9: 12 executions, 1 masks (at most 2 preemptions, Exact futex)\n\
                    x.rs:8:9: 3 executions, 1 masks (preemptions unbounded, Bare futex)";
        let figures = Figures::read(Tool::Loom, loom, None);
        assert_eq!((figures.all, figures.sampled), (135, 0));
        assert_eq!(figures.within.as_deref(), Some("at most 2 preemptions; preemptions unbounded"));
        let fuzz = Figures::read(Tool::Fuzz, "#9 NEW\nDone 4711 runs in 60 second(s)", Some(61.0));
        assert_eq!(fuzz.sampled, 4711);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let audited = Audited { date: "2026-11-23".into(), code: "1".into(), verdict: Verdict::Caught };
        let orderings = [("src/x.rs 7 Acquire -> Relaxed".to_owned(), audited.clone())].into();
        let bugs = [("mutants/x.toml: a-bug".to_owned(), audited)].into();
        let mut records = Records { orderings, bugs, ..Records::default() };
        records.note(&check("a"), Some(Figures { threads: Some(3), all: 4, ..Figures::default() }));
        records.note(&check("b"), Some(Figures::default()));
        let text = records.text().unwrap();
        assert_eq!(Records::parse(&text).unwrap(), records);
        assert!(Records::parse("{\"test\": 1}").unwrap_err().to_string().contains("verification.jsonl:1"));
    }

    #[test]
    fn a_record_of_other_code_is_stale() {
        let mut records = Records::default();
        let figures = |code: &str| Some(Figures { code: code.into(), ..Figures::default() });
        records.note(&check("a"), figures("now"));
        records.note(&check("b"), figures("before"));
        records.note(&check("c"), Some(Figures::default()));
        let codes = Codes::fixed(&[("p", "now")]);
        let states = ["a", "b", "c", "d"].map(|test| records.state(&check(test), &codes));
        assert_eq!(states, [State::Today, State::Stale, State::Stale, State::Never]);
    }

    #[test]
    fn a_test_that_fails_or_is_gone_has_no_record() {
        let mut records = Records::default();
        let (a, b) = (check("a"), check("b"));
        records.note(&a, Some(Figures::default()));
        records.note(&b, Some(Figures::default()));
        records.note(&a, None);
        assert_eq!((records.of(&a), records.of(&b)), (None, Some(&Figures::default())));
        records.retain(&[&a]);
        assert_eq!(records, Records::default());
    }
}
