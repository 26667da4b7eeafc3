//! The steps of a command: each is run, timed, and noted for the table at the end.

use crate::tools::help;
use crate::workspace::Workspace;
use anyhow::Context;
use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use xshell::{Cmd, Shell};

/// A step that did not pass: its name and the command line that repeats it.
#[derive(Debug)]
pub struct Failed {
    /// The step's name, as in the table.
    pub step: String,
    /// What to type to run it alone.
    pub repeat: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}` failed; to repeat it:\n    {}", self.step, self.repeat)
    }
}

impl std::error::Error for Failed {}

/// How many of the last lines of a step that failed are printed, if its output is in a file.
const LAST: usize = 40;
/// At most so many lines of its messages of failure are printed.
const MOST: usize = 120;

/// The steps of this run so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<Done>,
    tests: Tally,
    /// The tests of the last step.
    last: Tally,
    /// The exit code of the last step that was a program, unless a signal has ended it.
    code: Option<i32>,
    /// The directory of the files for the output of the steps. Without it the output is passed
    /// through.
    logs: Option<PathBuf>,
}

struct Done {
    name: String,
    took: Duration,
    passed: bool,
}

impl Steps {
    /// The output of later steps goes to a file for each in `dir`. Of a step that fails, the
    /// messages of failure and the last lines are printed.
    pub fn log_to(&mut self, dir: PathBuf) {
        self.logs = Some(dir);
    }

    /// Runs `cmd` with `env` added, and counts the tests that it reports.
    pub fn run(&mut self, name: &str, cmd: Cmd<'_>, env: &[(&str, &str)]) -> Result<(), Failed> {
        let repeat = command_line(&cmd, env);
        eprintln!("\n== {name}\n$ {repeat}");
        let mut command = Command::from(cmd);
        command.envs(env.iter().copied()).stdin(Stdio::null());
        let log = self
            .logs
            .as_ref()
            .map(|dir| dir.join(format!("{:02}-{}.log", self.done.len() + 1, file_name(name))));
        let mut code = None;
        let ran = self.timed(name, repeat, |tests| {
            let status = match log {
                Some(log) => into_file(&mut command, &log, tests)?,
                None => pass_through(&mut command, tests)?,
            };
            code = status.code();
            Ok(status.success())
        });
        self.code = code;
        ran
    }

    /// Runs `cmd` as [`Steps::run`] does, for a program that takes options of the caller. If it
    /// exits with 2, they are wrong.
    pub fn run_with_options(&mut self, name: &str, cmd: Cmd<'_>, env: &[(&str, &str)]) -> anyhow::Result<()> {
        let ran = self.run(name, cmd, env);
        if ran.is_err() && self.code == Some(2) {
            anyhow::bail!("{name}: an option is wrong");
        }
        Ok(ran?)
    }

    /// Runs `cmd` as [`Steps::run`] does, but leaves its tests out of the sum: for a command that
    /// runs each test several times.
    pub fn run_repeated(&mut self, name: &str, cmd: Cmd<'_>, env: &[(&str, &str)]) -> Result<(), Failed> {
        let sum = std::mem::take(&mut self.tests);
        let ran = self.run(name, cmd, env);
        self.tests = sum;
        ran
    }

    /// Runs a check that is a function of this program. `repeat` is a command line that does the
    /// same.
    pub fn check(
        &mut self,
        name: &str,
        repeat: &str,
        check: impl FnOnce() -> anyhow::Result<bool>,
    ) -> Result<(), Failed> {
        eprintln!("\n== {name}\n$ {repeat}");
        self.timed(name, repeat.into(), |_| check())
    }

    /// As [`Steps::check`], for a step that runs tests and counts them.
    pub fn count(
        &mut self,
        name: &str,
        repeat: &str,
        step: impl FnOnce(&mut Tally) -> anyhow::Result<bool>,
    ) -> Result<(), Failed> {
        eprintln!("\n== {name}\n$ {repeat}");
        self.timed(name, repeat.into(), step)
    }

    fn timed(
        &mut self,
        name: &str,
        repeat: String,
        step: impl FnOnce(&mut Tally) -> anyhow::Result<bool>,
    ) -> Result<(), Failed> {
        let start = Instant::now();
        self.last = Tally::default();
        let passed = step(&mut self.last).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            false
        });
        self.tests.passed += self.last.passed;
        self.tests.failed += self.last.failed;
        self.done.push(Done { name: name.into(), took: start.elapsed(), passed });
        if passed { Ok(()) } else { Err(Failed { step: name.into(), repeat }) }
    }

    /// The tests that the last step has run.
    pub fn last_tests(&self) -> &Tally {
        &self.last
    }

    /// Prints what was done, and how many tests the steps reported.
    fn print_table(&self) {
        if self.done.is_empty() {
            return;
        }
        let width = self.done.iter().map(|done| done.name.len()).max().unwrap_or(0);
        println!("\n{:width$}  {:>8}  result", "step", "time");
        for Done { name, took, passed } in &self.done {
            let result = if *passed { "ok" } else { "FAILED" };
            println!("{name:width$}  {:>6.1} s  {result}", took.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|done| done.took).sum();
        println!("{:width$}  {:>6.1} s", "", total.as_secs_f64());
        if self.tests != Tally::default() {
            println!("\n{} passed, {} failed", self.tests.passed, self.tests.failed);
        }
    }
}

/// The program `cargo PROGRAM` with these flags and this help. Runs a command in the workspace, and
/// prints the table of its steps and the error. Exit code 0: all steps passed. 1: a step failed,
/// which is a fault of the repository. 2: a tool is missing, or the command line is wrong.
pub fn main<F>(
    program: &str,
    flags: xflags::Result<F>,
    all: &str,
    run: impl FnOnce(F, &Shell, &Workspace, &mut Steps) -> anyhow::Result<()>,
) -> ExitCode {
    let flags = match flags {
        Ok(flags) => flags,
        Err(error) if error.is_help() => {
            print!("{}", help(program, &env::args().nth(1).unwrap_or_default(), all));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{program}: {error}; `cargo {program} --help` lists the commands and their options");
            return ExitCode::from(2);
        }
    };
    let mut steps = Steps::default();
    let result = Shell::new().map_err(Into::into).and_then(|shell| {
        let workspace = Workspace::load()?;
        shell.change_dir(&workspace.root);
        run(flags, &shell, &workspace, &mut steps)
    });
    steps.print_table();
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("{program}: {error:#}");
    ExitCode::from(exit_code(&error))
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Failed>() { 1 } else { 2 }
}

/// The name of a step as a part of a file name.
fn file_name(step: &str) -> String {
    let words = step.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Runs `command` with its output in the file `log`, and counts the tests in it. If it fails, the
/// part that tells why is printed.
fn into_file(command: &mut Command, log: &Path, tests: &mut Tally) -> anyhow::Result<ExitStatus> {
    eprintln!("its output: {}", log.display());
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = command.stdout(file.try_clone()?).stderr(file).status()?;
    let output = fs::read(log)?;
    let output = String::from_utf8_lossy(&output);
    output.lines().for_each(|line| tests.read(line));
    if !status.success() {
        for line in failures(&output) {
            eprintln!("> {line}");
        }
        eprintln!("{status}; the whole output: {}", log.display());
    }
    Ok(status)
}

/// The lines of `output` that tell why a step failed: what libtest prints from `failures:` to the
/// result, the errors of the compiler and of cargo, and the last lines. What tests have printed
/// that passed is none of them.
pub fn failures(output: &str) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.len().saturating_sub(LAST);
    let (mut chosen, mut inside, mut is_of_passed) = (Vec::new(), false, false);
    for line in &lines[..last] {
        inside = (inside || *line == "failures:") && !line.starts_with("test result:");
        is_of_passed =
            (is_of_passed || *line == "successes:") && !inside && !line.starts_with("test result:");
        if is_of_passed {
            continue;
        }
        if inside || line.starts_with("error") || line.ends_with("... FAILED") {
            chosen.push(*line);
        }
    }
    if chosen.len() > MOST {
        chosen.truncate(MOST);
        chosen.push("[..]");
    }
    chosen.extend(&lines[last..]);
    chosen
}

/// Runs `command`, copies its standard output line by line, and counts the tests in it.
fn pass_through(command: &mut Command, tests: &mut Tally) -> anyhow::Result<ExitStatus> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().expect("stdout is piped");
    let mut out = io::stdout().lock();
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line?;
        tests.read(&String::from_utf8_lossy(&line));
        out.write_all(&line)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(child.wait()?)
}

/// Tests passed and failed, summed over the summary lines of libtest.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that did not.
    pub failed: u64,
    /// The names of those that were not ignored, with what libtest adds. The output of several
    /// threads may be mixed in it.
    pub names: BTreeSet<String>,
}

impl Tally {
    /// Reads `test result: ok. 3 passed; 0 failed; ..` and `test NAME ... ok`; other lines count
    /// nothing.
    pub fn read(&mut self, line: &str) {
        let mut parts = line.split(" ... ").peekable();
        while let (Some(name), Some(end)) = (parts.next(), parts.peek()) {
            if name.contains("test ") && !end.starts_with("ignored") {
                self.names.insert(name.to_owned());
            }
        }
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        let count = |what: &str| -> u64 {
            let words: Vec<&str> = counts.split([' ', ';']).collect();
            words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
        };
        self.passed += count("passed");
        self.failed += count("failed");
    }
}

/// `cmd` with `env` as a user types it, the variables first.
pub fn command_line(cmd: &Cmd<'_>, env: &[(&str, &str)]) -> String {
    let mut line = String::new();
    for (key, value) in env {
        line += &format!("{key}='{value}' ");
    }
    line + &cmd.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_exits_with_1_and_everything_else_with_2() {
        let failed = Failed { step: "clippy".into(), repeat: "cargo clippy".into() };
        assert_eq!(exit_code(&failed.into()), 1);
        assert_eq!(exit_code(&crate::tools::Missing { tool: "Miri", get: "rustup".into() }.into()), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("--seeds 0: at least 1")), 2);
    }
    use xshell::{Shell, cmd};

    #[test]
    fn summary_lines_are_summed_and_others_ignored() {
        let mut tally = Tally::default();
        tally.read(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        tally.read("test raw::tests::it_passed ... ok");
        tally.read("test raw::tests::it_takes_long ... ignored, Miri is slow");
        tally.read("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        let names = BTreeSet::from(["test raw::tests::it_passed".to_owned()]);
        assert_eq!(tally, Tally { passed: 14, failed: 3, names });
    }

    #[test]
    fn the_command_line_can_be_pasted_into_a_shell() {
        let shell = Shell::new().unwrap();
        let package = "ulocks core";
        let line =
            command_line(&cmd!(shell, "cargo test -p {package}"), &[("RUSTFLAGS", "--cfg ulocks_loom")]);
        assert_eq!(line, r#"RUSTFLAGS='--cfg ulocks_loom' cargo test -p "ulocks core""#);
    }

    #[test]
    fn a_failing_step_is_named_and_stays_in_the_table() {
        let shell = Shell::new().unwrap();
        let mut steps = Steps::default();
        steps.run("good", cmd!(shell, "true"), &[]).unwrap();
        let failed = steps.run("bad", cmd!(shell, "false"), &[("A", "b")]).unwrap_err();
        assert_eq!((failed.step.as_str(), failed.repeat.as_str()), ("bad", "A='b' false"));
        let results: Vec<_> = steps.done.iter().map(|done| (done.name.as_str(), done.passed)).collect();
        assert_eq!(results, [("good", true), ("bad", false)]);
    }

    #[test]
    fn an_option_that_a_program_refuses_is_no_failed_step() {
        let shell = Shell::new().unwrap();
        let mut steps = Steps::default();
        for (code, expected) in [("2", 2), ("1", 1)] {
            let run = cmd!(shell, "sh -c 'exit '{code}");
            let error = steps.run_with_options("cost", run, &[]).unwrap_err();
            assert_eq!(exit_code(&error), expected);
        }
    }

    #[test]
    fn a_step_with_a_log_counts_its_tests_and_tells_why_it_failed() {
        let shell = Shell::new().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut steps = Steps::default();
        steps.log_to(dir.path().to_owned());
        let script = "echo 'test result: ok. 2 passed; 0 failed'; echo why >&2; exit 1";
        assert!(steps.run("tests, all of them", cmd!(shell, "sh -c {script}"), &[]).is_err());
        assert_eq!((steps.tests.passed, steps.tests.failed), (2, 0));
        let log = fs::read_to_string(dir.path().join("01-tests-all-of-them.log")).unwrap();
        assert_eq!(log, "test result: ok. 2 passed; 0 failed\nwhy\n");
    }

    #[test]
    fn the_failures_of_an_early_program_are_among_the_lines_that_are_shown() {
        let noise = "test some::other ... ok\n".repeat(500);
        let passed = "successes:\n---- some::other stdout ----\nerror: expected\n";
        let output = format!(
            "{noise}test one ... FAILED\n{passed}failures:\n---- one stdout ----\nwhy\n\
             test result: FAILED.\n{noise}the end"
        );
        let shown = failures(&output);
        let start = ["test one ... FAILED", "failures:", "---- one stdout ----", "why"];
        assert_eq!(shown[..start.len()], start);
        assert_eq!(shown.len(), start.len() + LAST);
        assert_eq!(shown.last(), Some(&"the end"));
        assert_eq!(failures(&format!("failures:\n{}", "x\n".repeat(9999))).len(), MOST + 1 + LAST);
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failed_step() {
        let shell = Shell::new().unwrap();
        let mut steps = Steps::default();
        assert!(steps.run("absent", cmd!(shell, "no-such-program-here"), &[]).is_err());
    }
}
