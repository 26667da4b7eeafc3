//! Runs a program to its end or to a limit.

use crate::steps::Tally;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time that a test run may take. The slowest model needs a small part of it.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The interval between two checks whether a run has ended.
const POLL: Duration = Duration::from_millis(20);
/// How many of the last lines of output are printed if a run did not end as specified.
const SHOWN: usize = 30;
/// How many lines are printed of the first panic.
const MESSAGE: usize = 3;

/// How a run ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub output: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was stopped.
    OutOfTime,
}

impl Ran {
    /// The tests in its output.
    pub fn tests(&self) -> Tally {
        let mut tests = Tally::default();
        self.output.lines().for_each(|line| tests.read(line));
        tests
    }

    /// In which execution the virtual machine found the first failure.
    pub fn executions(&self) -> Option<u64> {
        let mut lines = self.output.lines().filter_map(|line| line.strip_prefix("at execution "));
        lines.next()?.split_whitespace().next()?.parse().ok()
    }

    /// The message of the first panic, and the last lines.
    pub fn the_end(&self) -> String {
        let mut text = String::new();
        let lines: Vec<&str> = self.output.lines().collect();
        // A long trace may follow the message, so the message comes first.
        let panics = lines.iter().position(|line| line.contains("panicked at"));
        for line in panics.iter().flat_map(|&at| lines[at..].iter().take(MESSAGE)) {
            text += &format!("    > {line}\n");
        }
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            text += &format!("    | {line}\n");
        }
        text
    }
}

/// Runs `command` to its end, or to `limit`, with its output in the file `output`.
pub fn finish(command: &mut Command, output: &Path, limit: Duration) -> anyhow::Result<Ran> {
    let file = File::create(output)?;
    let status = run_within(command.stdout(file.try_clone()?).stderr(file), limit)?;
    ran(status, output, limit)
}

/// As [`finish`], but the standard error goes to the file `errors`.
pub fn finish_apart(
    command: &mut Command,
    output: &Path,
    errors: &Path,
    limit: Duration,
) -> anyhow::Result<Ran> {
    let status = run_within(command.stdout(File::create(output)?).stderr(File::create(errors)?), limit)?;
    ran(status, output, limit)
}

fn ran(status: Option<ExitStatus>, output: &Path, limit: Duration) -> anyhow::Result<Ran> {
    let end = match status {
        None => End::OutOfTime,
        Some(status) if status.success() => End::Passed,
        Some(_) => End::Failed,
    };
    let mut output = String::from_utf8_lossy(&fs::read(output)?).into_owned();
    // A signal and the limit have no other trace.
    match status {
        None => output += &format!("\nstopped after {} s\n", limit.as_secs_f64()),
        Some(status) if !status.success() => output += &format!("\nended by {status}\n"),
        Some(_) => {}
    }
    Ok(Ran { end, output })
}

/// A shell that kills the process group of `child` when its input ends: when that is dropped, and
/// also if this process is killed.
pub fn reaper(child: &Child) -> io::Result<Child> {
    let mut reaper = Command::new("sh");
    reaper.args(["-c", "read _; kill -KILL \"$0\"", &format!("-{}", child.id())]).process_group(0);
    reaper.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Runs `command` as a process group. None if it has not ended after `limit`.
/// The [`reaper`] sees to it that neither a test nor a child of a test stays behind.
pub fn run_within(command: &mut Command, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    let mut reaper = reaper(&child)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_program_that_hangs_says_how_long_it_ran() {
        let dir = tempfile::tempdir().unwrap();
        let run = |script: &str, limit| {
            finish(Command::new("sh").args(["-c", script]), &dir.path().join("output"), limit)
                .unwrap()
                .the_end()
        };
        assert_eq!(run("sleep 3600", Duration::from_millis(100)), "    | \n    | stopped after 0.1 s\n");
        assert!(run("exit 3", LIMIT).contains("ended by exit status: 3"));
    }
}
