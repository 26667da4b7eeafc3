//! `cargo lab suites`: runs the loom tests of published crates on the virtual machine and on loom
//! itself, and writes what came of it into the table in the README of `ulocks-loom`.
//!
//! A crate is run as it was published. Beside its source there is only a `[workspace]` at the end
//! of its manifest, so that it is one of its own, and no `Cargo.lock`, so that cargo takes the
//! patch.

use crate::flags::Suites;
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::exec::{self, End};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const LIST: &str = include_str!("suites.toml");
const README: &str = "crates/checker/loom/README.md";
const BEGIN: &str = "<!-- suites: written by `cargo lab suites` -->\n";
const END: &str = "<!-- end of suites -->\n";
const HEAD: &str = "| crate | arguments, flags | passed | cut | executions | redundant | seconds \
                    | with loom | executions | seconds |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n";
/// How long a suite may run. loom looks at its clock every 20,000 executions only.
const LIMIT: Duration = Duration::from_secs(1200);

/// How a crate's tests are run.
#[derive(Deserialize)]
struct Suite {
    name: String,
    version: String,
    /// For rustc.
    flags: String,
    /// For `cargo test`.
    args: String,
    /// The folder of the package that takes loom's place.
    #[serde(default = "newest")]
    patch: String,
    /// The profile of the build.
    #[serde(default = "release")]
    profile: String,
}

fn newest() -> String {
    "patch".into()
}

fn release() -> String {
    "release".into()
}

#[derive(Deserialize)]
struct List {
    suite: Vec<Suite>,
}

/// What a run of a suite has printed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: u64,
    failed: u64,
    models: u64,
    /// Models that were left before all their executions were tried.
    cut: u64,
    executions: u64,
    redundant: u64,
}

/// A run of a suite.
struct Ran {
    outcome: Outcome,
    end: End,
    seconds: f64,
}

/// Runs the suites that `flags` name, and writes their rows.
pub fn run(flags: &Suites, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let List { mut suite } = toml::from_str(LIST).context("suites.toml")?;
    if let Some(only) = &flags.only {
        suite.retain(|suite| only.split(',').any(|name| name == suite.name));
        ensure!(!suite.is_empty(), "{only}: no such suite in xtask/lab/src/suites/suites.toml");
    }
    let dir = workspace.target().join("suites");
    let mut failed = Vec::new();
    for suite in &suite {
        let command = format!("cargo lab suites --only {}", suite.name);
        let step = steps.check(&suite.title(), &command, || {
            let source = suite.source(&dir)?;
            // What loom finds is its own affair.
            let (row, passes) = suite.run(&source, &dir, &workspace.root)?;
            println!("{row}");
            let readme = workspace.root.join(README);
            let text = fs::read_to_string(&readme)?;
            fs::write(&readme, with_row(&text, &suite.title(), &row)?)?;
            if !passes {
                failed.push(suite.name.clone());
            }
            Ok(passes)
        });
        if step.is_err() && !failed.contains(&suite.name) {
            failed.push(suite.name.clone());
        }
    }
    ensure!(failed.is_empty(), "failed: {}; their output is in {}", failed.join(", "), dir.display());
    Ok(())
}

impl Suite {
    fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// A copy of the crate's source, which cargo fetches.
    fn source(&self, dir: &Path) -> anyhow::Result<PathBuf> {
        let copy = dir.join(format!("{}-{}", self.name, self.version));
        if copy.exists() {
            return Ok(copy);
        }
        let fetch = dir.join("fetch").join(&self.name);
        fs::create_dir_all(fetch.join("src"))?;
        fs::write(fetch.join("src/lib.rs"), "")?;
        fs::write(
            fetch.join("Cargo.toml"),
            format!(
                "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[dependencies]\n{} = \"={}\"\n[workspace]\n",
                self.name, self.version
            ),
        )?;
        let output =
            Command::new("cargo").args(["metadata", "--format-version", "1"]).current_dir(&fetch).output()?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let manifest = packages
            .iter()
            .find(|package| package["name"] == *self.name && package["version"] == *self.version)
            .and_then(|package| package["manifest_path"].as_str())
            .context("cargo has not fetched it")?;
        let from = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        let copied = Command::new("cp").arg("-r").arg(from).arg(&copy).status()?;
        ensure!(copied.success(), "{} cannot be copied", from.display());
        let manifest = copy.join("Cargo.toml");
        let mut text = fs::read_to_string(&manifest)?;
        if !text.contains("\n[workspace]") {
            text += "\n[workspace]\n";
            fs::write(&manifest, text)?;
        }
        let lock = copy.join("Cargo.lock");
        if lock.exists() {
            fs::remove_file(lock)?;
        }
        Ok(copy)
    }

    /// The row of the table, and whether all has passed here.
    fn run(&self, source: &Path, dir: &Path, root: &Path) -> anyhow::Result<(String, bool)> {
        let patch = root.join("crates/checker/loom").join(&self.patch);
        let here = self.run_with(source, dir, "ulocks-loom", Some(&patch))?;
        ensure!(here.outcome.models > 0, "{}: no model has run; was the patch used?", self.name);
        let loom = self.run_with(source, dir, "loom", None)?;
        Ok((self.row(&here, &loom), matches!(here.end, End::Passed)))
    }

    /// Runs the suite on one checker.
    fn run_with(
        &self,
        source: &Path,
        dir: &Path,
        checker: &str,
        patch: Option<&Path>,
    ) -> anyhow::Result<Ran> {
        let cargo = |more: &[&str]| {
            let mut command = Command::new("cargo");
            command.args(["test", "--profile", &self.profile]);
            command.args(["--config", "profile.release.debug-assertions=true"]);
            if let Some(patch) = patch {
                let path = patch.display().to_string();
                command.arg("--config").arg(format!("patch.crates-io.loom.path={path:?}"));
            }
            command
                .args(self.args.split(' '))
                .args(more)
                .current_dir(source)
                .env("RUSTFLAGS", &self.flags)
                .env("CARGO_TARGET_DIR", dir.join("target").join(&self.name).join(checker))
                .env("LOOM_MAX_PREEMPTIONS", "2")
                .env("LOOM_MAX_DURATION", "10")
                // As in the CI of tokio, whose models are larger than loom expects.
                .env("LOOM_MAX_BRANCHES", "10000")
                .env("LOOM_LOG", "loom::model=info");
            command
        };
        // Each checker has its own.
        let lock = source.join("Cargo.lock");
        if lock.exists() {
            fs::remove_file(lock)?;
        }
        let built = cargo(&["--no-run"]).output()?;
        ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let [output, errors] =
            ["log", "errors"].map(|kind| dir.join(format!("{}.{checker}.{kind}", self.name)));
        let begun = Instant::now();
        let mut tests = cargo(&["--", "--test-threads=1", "--nocapture"]);
        let ran = exec::finish_apart(&mut tests, &output, &errors, LIMIT)?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Ran { outcome: Outcome::of(&ran.output), end: ran.end, seconds })
    }

    fn row(&self, here: &Ran, loom: &Ran) -> String {
        let mut row = format!("| {} | `{}`", self.title(), self.args);
        if !self.flags.is_empty() {
            let _ = write!(row, ", `{}`", self.flags);
        }
        let Outcome { cut, executions, redundant, models, .. } = here.outcome;
        let _ =
            write!(row, " | {} | {cut} | {executions} | {redundant} | {:.1} |", here.verdict(), here.seconds);
        let Outcome { models: ended, executions, .. } = loom.outcome;
        let executions = match ended {
            0 => "not said".to_owned(),
            ended if ended == models => executions.to_string(),
            ended => format!("{executions} in {ended} of {models} models"),
        };
        let _ = write!(row, " {} | {executions} | {:.1} |", loom.verdict(), loom.seconds);
        row
    }
}

impl Ran {
    fn verdict(&self) -> String {
        let Outcome { passed, failed, .. } = self.outcome;
        match self.end {
            End::Passed => format!("{passed} of {}", passed + failed),
            End::Failed => format!("{passed} of {}, FAILED", passed + failed),
            End::OutOfTime => format!("{passed}, no end in {} s", LIMIT.as_secs()),
        }
    }
}

impl Outcome {
    /// Of the lines that the models and the harness have printed.
    fn of(text: &str) -> Self {
        let before = |line: &str, word: &str| {
            let at = line.find(word)?;
            line[..at].rsplit(' ').find(|word| !word.is_empty())?.parse::<u64>().ok()
        };
        let mut outcome = Self::default();
        for line in text.lines() {
            if let Some(at) = line.find("loom model at ") {
                let line = &line[at..];
                outcome.models += 1;
                outcome.executions += before(line, " execution").unwrap_or(0);
                outcome.redundant += before(line, " redundant").unwrap_or(0);
                outcome.cut += u64::from(line.contains("CUT"));
            }
            // loom's own.
            if let Some(at) = line.find("Completed in ") {
                outcome.models += 1;
                outcome.executions += before(&line[at..], " iterations").unwrap_or(0);
            }
            if let Some(at) = line.find("test result: ") {
                let line = &line[at..];
                outcome.passed += before(line, " passed").unwrap_or(0);
                outcome.failed += before(line, " failed").unwrap_or(0);
            }
        }
        outcome
    }
}

/// `readme` with `row` in its table, in the place of one with this title.
fn with_row(readme: &str, title: &str, row: &str) -> anyhow::Result<String> {
    let begin = readme.find(BEGIN).with_context(|| format!("{README} has no line {BEGIN:?}"))? + BEGIN.len();
    let end = readme.find(END).with_context(|| format!("{README} has no line {END:?}"))?;
    let mut rows: Vec<&str> = readme[begin..end].lines().skip(3).filter(|line| !line.is_empty()).collect();
    rows.retain(|old| !old.starts_with(&format!("| {title} |")));
    rows.push(row);
    rows.sort_unstable();
    Ok(format!("{}\n{HEAD}{}\n\n{}", &readme[..begin], rows.join("\n"), &readme[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_is_sorted() {
        let List { suite } = toml::from_str(LIST).unwrap();
        assert!(suite.is_sorted_by_key(|suite| &suite.name));
    }

    #[test]
    fn what_was_printed_is_counted() {
        let text = "\
test a ... loom model at src/a.rs:1: all 12 executions and 2 redundant of up to 2 threads, 397 steps (298µs)
ok
test b ... loom model at src/b.rs:1: cut by the clock: 31922 executions of up to 4 threads; CUT: executions are left
ok
test result: ok. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.00s
";
        let wanted = Outcome { passed: 2, failed: 1, models: 2, cut: 1, executions: 31_934, redundant: 2 };
        assert_eq!(Outcome::of(text), wanted);
        let looms = "\u{1b}[32m INFO\u{1b}[0m loom::model: Completed in 24 iterations\n";
        assert_eq!(Outcome::of(looms), Outcome { models: 1, executions: 24, ..Outcome::default() });
    }

    #[test]
    fn a_row_takes_the_place_of_the_one_before() {
        let readme = format!("text\n{BEGIN}\n{HEAD}| b 1 | old |\n| c 1 | x |\n\n{END}more\n");
        let new = with_row(&readme, "b 1", "| b 1 | new |").unwrap();
        assert_eq!(new, readme.replace("old", "new"));
        let more = with_row(&new, "a 1", "| a 1 | y |").unwrap();
        assert_eq!(more, new.replace("| b 1", "| a 1 | y |\n| b 1"));
    }
}
