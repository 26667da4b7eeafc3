//! `cargo xtask mutants`: plants one bug after the other and demands that the tests named for it
//! report it.
//!
//! A model that has never failed proves nothing. The bugs that the models must report are kept
//! beside the source, as replacements of text (`spec.rs` has the format). This command applies them
//! to a copy of the workspace:
//!
//! | in `target/mutants` | what |
//! |---|---|
//! | `source/` | the tracked files, and the untracked files that git does not ignore |
//! | `native/`, `loom/`, `vm/` | the target directory of each world, kept from run to run |
//! | `output` | the output of the last cargo command |
//! | `lock` | held by the command that works here |
//!
//! A file of the copy is written only if its content differs, so cargo rebuilds only what a mutant
//! touches. An interrupted run leaves its mutant in the copy; the next run overwrites it.
//!
//! The named tests first run without any mutant. They must pass, and at least one test must run.
//! Otherwise a failure under a mutant would prove nothing: the test might always fail, or the
//! filter might select no test.

pub mod spec;

use crate::flags;
use crate::steps::{Steps, Tally};
use crate::workspace::Workspace;
use crate::world::World;
use anyhow::{Context, bail};
use spec::{HANG, Mutant, Probe, WORLDS};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time a test run may take. The slowest model needs a small part of it.
const LIMIT: Duration = Duration::from_secs(300);
/// The time between two looks whether a run has ended.
const POLL: Duration = Duration::from_millis(20);
/// How many of the last lines of output are printed if a run did not end as specified.
const SHOWN: usize = 30;
/// How many lines are printed of the first panic.
const MESSAGE: usize = 3;

/// Checks all specifications, then runs the chosen mutants.
pub fn run(flags: &flags::Mutants, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let mut mutants = Vec::new();
    steps.check("specifications", "cargo xtask mutants --list", || {
        let (found, faults) = spec::load(workspace)?;
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        mutants = found;
        Ok(faults.is_empty())
    })?;
    let chosen = choose(mutants, flags)?;
    if flags.list {
        list(&chosen);
        return Ok(());
    }
    Ok(steps.check("mutants", &repeat(flags), || {
        let scratch = Scratch::renew(workspace)?;
        let rows = run_all(&chosen, &scratch)?;
        print_table(&rows);
        Ok(rows.iter().all(|row| row.verdict.is_as_said()))
    })?)
}

/// The mutants that `flags` select, with the tests that they select.
fn choose(mut mutants: Vec<Mutant>, flags: &flags::Mutants) -> anyhow::Result<Vec<Mutant>> {
    if let Some(world) = &flags.world {
        if !WORLDS.contains(&world.as_str()) {
            bail!("--world {world}: no such world; there are: {}", WORLDS.join(", "));
        }
        mutants.iter_mut().for_each(|mutant| mutant.found_by.retain(|probe| probe.world == *world));
    }
    if let Some(only) = &flags.only {
        mutants.retain(|mutant| mutant.name == *only || mutant.spec.contains(only.as_str()));
    }
    mutants.retain(|mutant| !mutant.found_by.is_empty());
    if mutants.is_empty() {
        bail!("no mutant is selected; `cargo xtask mutants --list` names all");
    }
    Ok(mutants)
}

fn list(mutants: &[Mutant]) {
    for Mutant { spec, name, breaks, property, found_by, sound, .. } in mutants {
        println!("{spec}: {name}{}\n    {breaks}\n    {property}", if *sound { " (sound)" } else { "" });
        for Probe { world, package, test, filter, says } in found_by {
            let says = says.as_deref().map_or(String::new(), |says| format!(": \"{says}\""));
            println!("    {world}: {package}, {test}, {filter}{says}");
        }
    }
}

fn repeat(flags: &flags::Mutants) -> String {
    let mut line = "cargo xtask mutants".to_owned();
    for (flag, value) in [("--only", &flags.only), ("--world", &flags.world)] {
        line.extend(value.iter().map(|value| format!(" {flag} {value}")));
    }
    line
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It failed, and its output contains the specified text.
    Caught,
    /// It passed, as the mutant is sound or absent.
    Passes,
    /// It passed, and should have failed.
    Survived,
    /// It failed, but not as specified.
    Wrong,
    /// It was not built.
    DoesNotCompile,
    /// The filter selects no test.
    NoTest,
    /// The tests do not pass without the mutant.
    NotRun,
}

impl Verdict {
    fn is_as_said(self) -> bool {
        matches!(self, Self::Caught | Self::Passes)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caught => "caught",
            Self::Passes => "passes",
            Self::Survived => "SURVIVED",
            Self::Wrong => "WRONG",
            Self::DoesNotCompile => "DOES NOT COMPILE",
            Self::NoTest => "NO TEST",
            Self::NotRun => "NOT RUN",
        })
    }
}

/// How a run ended, and what it printed.
#[derive(Debug)]
struct Ran {
    end: End,
    output: String,
}

#[derive(Clone, Copy, Debug)]
enum End {
    DoesNotCompile,
    Passed,
    Failed,
    OutOfTime,
}

impl Ran {
    /// The verdict. `says` is the text that the output must contain; without it the run must pass.
    fn judge(&self, says: Option<&str>) -> Verdict {
        match (self.end, says) {
            (End::DoesNotCompile, _) => Verdict::DoesNotCompile,
            (End::Passed, _) if self.tests().passed == 0 => Verdict::NoTest,
            (End::Passed, None) => Verdict::Passes,
            (End::Passed, Some(_)) => Verdict::Survived,
            (End::OutOfTime, Some(HANG)) => Verdict::Caught,
            (End::Failed, Some(says)) if says != HANG && self.output.contains(says) => Verdict::Caught,
            (End::OutOfTime | End::Failed, _) => Verdict::Wrong,
        }
    }

    fn tests(&self) -> Tally {
        let mut tests = Tally::default();
        self.output.lines().for_each(|line| tests.read(line));
        tests
    }

    /// Prints the message of the first panic, and the last lines.
    fn print_end(&self) {
        if matches!(self.end, End::OutOfTime) {
            println!("    stopped after {} s", LIMIT.as_secs());
        }
        let lines: Vec<&str> = self.output.lines().collect();
        // A long trace may follow the message, so the message comes first.
        let panics = lines.iter().position(|line| line.contains("panicked at"));
        for line in panics.iter().flat_map(|&at| lines[at..].iter().take(MESSAGE)) {
            println!("    > {line}");
        }
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            println!("    | {line}");
        }
    }
}

/// A line of the table.
struct Row {
    mutant: String,
    tests: String,
    verdict: Verdict,
    took: Duration,
}

/// Runs the tests without a mutant, then each mutant on those that passed.
fn run_all(mutants: &[Mutant], scratch: &Scratch<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut sound = BTreeSet::new();
    let probes: BTreeMap<_, _> =
        mutants.iter().flat_map(|mutant| &mutant.found_by).map(|probe| (key(probe), probe)).collect();
    for (key, probe) in probes {
        let row = scratch.row(None, probe)?;
        if row.verdict.is_as_said() {
            sound.insert(key);
        }
        rows.push(row);
    }
    for mutant in mutants {
        let path = scratch.source.join(&mutant.file);
        let text = fs::read_to_string(&path)?;
        let broken = mutant.applied(&text).map_err(|fault| anyhow::anyhow!("{}: {fault}", mutant.name))?;
        fs::write(&path, broken)?;
        for probe in &mutant.found_by {
            rows.push(if sound.contains(&key(probe)) {
                scratch.row(Some(mutant), probe)?
            } else {
                let (mutant, tests) = (mutant.name.clone(), shown(probe));
                Row { mutant, tests, verdict: Verdict::NotRun, took: Duration::ZERO }
            });
        }
        fs::write(&path, text)?;
    }
    Ok(rows)
}

/// What makes the tests of two probes the same.
fn key(probe: &Probe) -> [&str; 4] {
    [&probe.world, &probe.package, &probe.test, &probe.filter]
}

fn shown(Probe { world, package, filter, .. }: &Probe) -> String {
    format!("{world}: {package} {filter}")
}

fn print_table(rows: &[Row]) {
    let width = |column: fn(&Row) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (mutants, tests) = (width(|row| row.mutant.len()), width(|row| row.tests.len()));
    println!("\n{:mutants$}  {:tests$}  {:>8}  verdict", "mutant", "tests", "time");
    for Row { mutant, tests: named, verdict, took } in rows {
        println!("{mutant:mutants$}  {named:tests$}  {:>6.1} s  {verdict}", took.as_secs_f64());
    }
}

/// The copy of the workspace that mutants are planted in.
struct Scratch<'a> {
    workspace: &'a Workspace,
    base: PathBuf,
    source: PathBuf,
    /// Locked while it is open, so that two commands do not change one copy.
    _lock: File,
}

impl<'a> Scratch<'a> {
    /// Makes the copy equal to the workspace.
    fn renew(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let base = workspace.target().join("mutants");
        let source = base.join("source");
        fs::create_dir_all(&source)?;
        let lock = File::create(base.join("lock"))?;
        lock.try_lock().with_context(|| format!("another run of this command is in {}", base.display()))?;
        let kept = git_files(&workspace.root)?;
        for path in &kept {
            renew_file(&workspace.root.join(path), &source.join(path))?;
        }
        remove_others(&source, &source, &kept)?;
        Ok(Self { workspace, base, source, _lock: lock })
    }

    /// Runs the tests of `probe`, with `mutant` planted if there is one, and prints the verdict.
    fn row(&self, mutant: Option<&Mutant>, probe: &Probe) -> anyhow::Result<Row> {
        let tests = shown(probe);
        let name = mutant.map_or("(no mutant)", |mutant| &mutant.name);
        println!("\n-- {name}, {tests}");
        let mut test = self.cargo_test(probe, &["--", &probe.filter])?;
        if mutant.is_none() {
            println!("$ {test:?}");
        }
        let mut ran = self.finish(&mut self.cargo_test(probe, &["--no-run"])?, Duration::MAX)?;
        if !matches!(ran.end, End::Passed) {
            ran.end = End::DoesNotCompile;
        }
        let start = Instant::now();
        if matches!(ran.end, End::Passed) {
            ran = self.finish(&mut test, LIMIT)?;
        }
        let took = start.elapsed();
        let verdict = ran.judge(mutant.filter(|mutant| !mutant.sound).and(probe.says.as_deref()));
        println!("{verdict}, {:.1} s", took.as_secs_f64());
        if !verdict.is_as_said() {
            ran.print_end();
        }
        Ok(Row { mutant: name.into(), tests, verdict, took })
    }

    /// `cargo test` for the target of `probe`, with the flags of its world; native ones are those
    /// of `cargo xtask test`.
    fn cargo_test(&self, probe: &Probe, more: &[&str]) -> anyhow::Result<Command> {
        let Probe { world, package, test, .. } = probe;
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.source).arg("test");
        // A mutant changes little of a test target. The profile of models would compile all of it.
        cargo.env("CARGO_INCREMENTAL", "1");
        // A backtrace would push everything else out of the last lines.
        cargo.env("RUST_BACKTRACE", "0");
        if world == "native" {
            cargo.args(["-p", package, "--all-features"]).env("CARGO_TARGET_DIR", self.base.join(world));
        } else {
            let packages = self.workspace.select(std::slice::from_ref(package), "a manifest", |_| true)?;
            let world = World::new(world, &self.base);
            cargo.args(["--profile", "model"]).args(world.args(&packages)).envs(world.env());
        }
        match test.as_str() {
            spec::LIB => cargo.arg("--lib"),
            test => cargo.args(["--test", test]),
        };
        cargo.args(more);
        Ok(cargo)
    }

    /// Runs `command` to its end, or to `limit`.
    fn finish(&self, command: &mut Command, limit: Duration) -> anyhow::Result<Ran> {
        let path = self.base.join("output");
        let output = File::create(&path)?;
        let status = run_within(command.stdout(output.try_clone()?).stderr(output), limit)?;
        let end = match status {
            None => End::OutOfTime,
            Some(status) if status.success() => End::Passed,
            Some(_) => End::Failed,
        };
        Ok(Ran { end, output: String::from_utf8_lossy(&fs::read(path)?).into_owned() })
    }
}

/// Runs `command` as a process group. None if it has not ended after `limit`.
///
/// A shell reads from this process, and kills the group when its input ends. The input ends when
/// this function returns, and also if this process is killed. So neither a test nor a child of a
/// test stays behind.
fn run_within(command: &mut Command, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    let mut reaper = Command::new("sh");
    reaper.args(["-c", "read _; kill -KILL \"$0\"", &format!("-{}", child.id())]).process_group(0);
    let mut reaper = reaper.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let start = Instant::now();
    let mut status = child.try_wait()?;
    while status.is_none() && start.elapsed() < limit {
        sleep(POLL);
        status = child.try_wait()?;
    }
    drop(reaper.stdin.take());
    reaper.wait()?;
    if status.is_none() {
        child.wait()?;
    }
    Ok(status)
}

/// The files of the repository at `root`, as they are in the working tree.
fn git_files(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(args).current_dir(root).output().context("git")?;
    if !listed.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let paths = String::from_utf8(listed.stdout)?;
    Ok(paths.split_terminator('\0').map(PathBuf::from).filter(|path| root.join(path).is_file()).collect())
}

/// Makes `to` a copy of `from`, unless it is one.
fn renew_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(to, content).with_context(|| format!("cannot write {}", to.display()))
}

/// Removes what is under `dir` and not among `kept`, which are relative to `root`.
fn remove_others(dir: &Path, root: &Path, kept: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, root, kept)?;
        } else if !kept.contains(path.strip_prefix(root)?) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
