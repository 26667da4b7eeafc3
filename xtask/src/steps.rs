//! The steps of a command: each is run, timed, and noted for the table at the end.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xshell::Cmd;

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

/// The steps of this run so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<Done>,
    tests: Tally,
}

struct Done {
    name: String,
    took: Duration,
    passed: bool,
}

impl Steps {
    /// Runs `cmd` with `env` added, passing its output through and counting the tests it reports.
    pub fn run(&mut self, name: &str, cmd: Cmd<'_>, env: &[(&str, &str)]) -> Result<(), Failed> {
        let repeat = command_line(&cmd, env);
        eprintln!("\n== {name}\n$ {repeat}");
        let mut command = Command::from(cmd);
        command.envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
        self.timed(name, repeat, |tests| pass_through(&mut command, tests))
    }

    /// Runs `cmd` as [`Steps::run`] does, but counts nothing: for output that several processes
    /// write at once.
    pub fn run_uncounted(&mut self, name: &str, cmd: Cmd<'_>, env: &[(&str, &str)]) -> Result<(), Failed> {
        let repeat = command_line(&cmd, env);
        eprintln!("\n== {name}\n$ {repeat}");
        let mut command = Command::from(cmd);
        command.envs(env.iter().copied()).stdin(Stdio::null());
        self.timed(name, repeat, |_| Ok(command.status()?.success()))
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

    fn timed(
        &mut self,
        name: &str,
        repeat: String,
        step: impl FnOnce(&mut Tally) -> anyhow::Result<bool>,
    ) -> Result<(), Failed> {
        let start = Instant::now();
        let passed = step(&mut self.tests).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            false
        });
        self.done.push(Done { name: name.into(), took: start.elapsed(), passed });
        if passed { Ok(()) } else { Err(Failed { step: name.into(), repeat }) }
    }

    /// Prints what was done, and how many tests the steps reported.
    pub fn print_table(&self) {
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

/// Runs `command`, copies its standard output line by line, and counts the tests in it. Returns
/// whether it succeeded.
fn pass_through(command: &mut Command, tests: &mut Tally) -> anyhow::Result<bool> {
    let mut child = command.spawn()?;
    let pipe = child.stdout.take().expect("stdout is piped");
    let mut out = io::stdout().lock();
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line?;
        tests.read(&String::from_utf8_lossy(&line));
        out.write_all(&line)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(child.wait()?.success())
}

/// Tests passed and failed, summed over the summary lines of libtest.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that did not.
    pub failed: u64,
}

impl Tally {
    /// Reads `test result: ok. 3 passed; 0 failed; ..`; other lines count nothing.
    pub fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        let count = |what: &str| -> u64 {
            let words: Vec<&str> = counts.split([' ', ';']).collect();
            words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
        };
        self.passed += count("passed");
        self.failed += count("failed");
    }
}

/// The line to type in a shell, variables first.
fn command_line(cmd: &Cmd<'_>, env: &[(&str, &str)]) -> String {
    let mut line = String::new();
    for (key, value) in env {
        line += &format!("{key}='{value}' ");
    }
    line + &cmd.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xshell::{Shell, cmd};

    #[test]
    fn summary_lines_are_summed_and_others_ignored() {
        let mut tally = Tally::default();
        tally.read(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        tally.read("test raw::tests::it_passed ... ok");
        tally.read("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(tally, Tally { passed: 14, failed: 3 });
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
    fn a_program_that_does_not_exist_is_a_failed_step() {
        let shell = Shell::new().unwrap();
        let mut steps = Steps::default();
        assert!(steps.run("absent", cmd!(shell, "no-such-program-here"), &[]).is_err());
    }
}
