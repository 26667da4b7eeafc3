//! What the last `cargo xtask test` has found out: which programs ran, of which code, and what they
//! printed.
//!
//! It runs nearly all tests of the maps, on the source of a commit. So its logs are as good as a
//! run of each test alone, but for the time that a test takes.

use super::map::{Check, Tool};
use super::records::{Figures, Records, State};
use super::run::not_tested;
use crate::code::Codes;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use xtask::workspace::Workspace;

/// The world of the tests that run on the machine.
pub const NATIVE: &str = "native";

/// A program of tests that has run to its end.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// `native`, `loom` or `vm`.
    pub world: String,
    /// Its package.
    pub package: String,
    /// Its target, as a map names it.
    pub target: String,
    /// The hash of the code that it was built from.
    pub code: String,
    /// The day.
    pub date: String,
    /// What it printed.
    pub log: PathBuf,
}

impl Run {
    /// Adds this run to `file`.
    pub fn append(&self, file: &Path) -> anyhow::Result<()> {
        let line = serde_json::to_string(self)? + "\n";
        let mut file = File::options().create(true).append(true).open(file)?;
        Ok(file.write_all(line.as_bytes())?)
    }
}

/// The file of the runs. A run of all tests removes it first, since it overwrites the logs.
pub fn file(workspace: &Workspace) -> PathBuf {
    workspace.target().join("xtask-test/runs.jsonl")
}

/// The runs of the present code, each with what it printed.
fn of_today(workspace: &Workspace, codes: &Codes) -> anyhow::Result<Vec<(Run, String)>> {
    let file = file(workspace);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let mut runs = Vec::new();
    for line in fs::read_to_string(&file)?.lines() {
        let run: Run = serde_json::from_str(line).with_context(|| format!("{}: {line}", file.display()))?;
        if codes.of(&run.package) == run.code {
            let log = fs::read_to_string(&run.log).with_context(|| run.log.display().to_string())?;
            runs.push((run, log));
        }
    }
    Ok(runs)
}

/// The tests that a run of all tests has seen pass. Whether a test itself has changed since the run
/// is not known, so only that command asks.
#[derive(Default)]
pub struct Passed(Vec<(Run, String)>);

impl Passed {
    /// Reads the logs of this command's tests.
    pub fn load(workspace: &Workspace) -> anyhow::Result<Self> {
        Ok(Self(of_today(workspace, &Codes::load(workspace)?)?))
    }

    /// Whether a test of `place` has a name that contains `filter`, and each such test has passed.
    /// The place is a world, a package and a target.
    pub fn has(&self, place: [&str; 3], filter: &str) -> bool {
        let of_place = self.0.iter().filter(|(run, _)| [&run.world, &run.package, &run.target] == place);
        let said = of_place.flat_map(|(_, log)| log.lines()).filter_map(|line| {
            let (name, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
            (name.contains(filter) && !end.starts_with("ignored")).then_some(end)
        });
        let mut said = said.peekable();
        said.peek().is_some() && said.all(|end| end == "ok")
    }
}

/// Records what the runs of the present code say of `checks`. A record that there is has the time
/// that its test takes, and stays.
pub fn collect(
    workspace: &Workspace,
    checks: &BTreeSet<&Check>,
    codes: &Codes,
    records: &mut Records,
) -> anyhow::Result<()> {
    let mut count = 0;
    for (run, log) in of_today(workspace, codes)? {
        let is_of_run = |check: &&&Check| {
            let place = (check.tool.world(), &check.package, &check.target);
            place == (Some(run.world.as_str()), &run.package, &run.target)
        };
        for check in checks.iter().filter(is_of_run) {
            match result(check.tool, &check.test, &log) {
                Some(Some(_)) if records.state(check, codes) == State::Today => {}
                Some(figures) => {
                    let (date, code) = (run.date.clone(), run.code.clone());
                    records.note(check, figures.map(|figures| Figures { date, code, ..figures }));
                    count += 1;
                }
                None => {}
            }
        }
    }
    println!("{count} new results of `cargo xtask test`");
    Ok(())
}

/// What `log` says of a test: its figures, or `Some(None)` if it has failed. None if it was not
/// run, or has tested nothing on this machine.
fn result(tool: Tool, test: &str, log: &str) -> Option<Option<Figures>> {
    let ends = [format!("test {test} ... "), format!("test {test} - should panic ... ")];
    let said = log.lines().find_map(|line| ends.iter().find_map(|end| line.strip_prefix(end.as_str())))?;
    let begin = format!("\n---- {test} stdout ----\n");
    let output = log.split_once(&begin).map_or("", |(_, rest)| {
        let end = rest.find("\n---- ").unwrap_or(rest.len());
        &rest[..end]
    });
    match said {
        "ok" if not_tested(output).is_some() => None,
        "ok" => Some(Some(Figures::read(tool, output, None))),
        "FAILED" => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\nrunning 5 tests\ntest a ... ok\ntest a::b - should panic ... ok\n\
                       test c ... FAILED\ntest d ... ok\ntest e ... ignored\n\nsuccesses:\n\n\
                       ---- a stdout ----\nx.rs:6: all 465 executions of up to 2 threads, 9 steps (exhaustive)\n\n\
                       ---- d stdout ----\nnot tested: no priority\n\n\nsuccesses:\n    a\n    d\n";

    #[test]
    fn a_log_says_which_test_has_passed_and_what_it_printed() {
        let of = |test: &str| result(Tool::Vm, test, LOG);
        let figures = of("a").unwrap().unwrap();
        assert_eq!((figures.all, figures.threads, figures.seconds), (465, Some(2), None));
        assert_eq!(of("a::b").unwrap().unwrap().all, 0, "the output of another test is not its own");
        assert_eq!(of("c"), Some(None));
        for none in ["d", "e", "f", "b"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn only_runs_of_the_present_code_become_records() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), packages: Vec::new() };
        let file = file(&workspace);
        let log = file.with_file_name("log");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&log, LOG).unwrap();
        let run = |world: &str, package: &str| {
            let [world, package, target, code, date] =
                [world, package, "vm", "now", "2026-11-30"].map(str::to_owned);
            Run { world, package, target, code, date, log: log.clone() }.append(&file).unwrap();
        };
        run("vm", "p");
        run("loom", "r");
        run("vm", "old");
        let check = |package: &str, test: &str| Check {
            tool: Tool::Vm,
            package: package.into(),
            target: "vm".into(),
            test: test.into(),
        };
        let codes = Codes::fixed(&[("p", "now"), ("old", "changed"), ("r", "now")]);
        let passed = Passed(of_today(&workspace, &codes).unwrap());
        let has = |package: &str, filter: &str| passed.has(["vm", package, "vm"], filter);
        assert!(has("p", "a") && has("p", "a::"));
        assert!(!has("p", "c") && !has("p", ""), "one has failed");
        assert!(!has("p", "e") && !has("p", "f"), "none was run");
        assert!(!has("old", "a") && !has("r", "a"), "another code, or another world");
        let checks = [check("p", "a"), check("p", "c"), check("old", "a"), check("r", "a")];
        let mut records = Records::default();
        records.note(&checks[1], Some(Figures { code: "now".into(), ..Figures::default() }));
        collect(&workspace, &checks.iter().collect(), &codes, &mut records).unwrap();
        let states = checks.each_ref().map(|check| records.state(check, &codes));
        assert_eq!(states, [State::Today, State::Never, State::Never, State::Never]);
        assert_eq!(records.of(&checks[0]).unwrap().date, "2026-11-30");
        fs::remove_file(&file).unwrap();
        _ = fs::remove_dir_all(workspace.target().join("xtask-test"));
    }
}
