//! What the programs of Molnar and Long share: a main function, locks that take turns, the ratio of
//! two of them, and a record.

use crate::report::{self, Ended};
use crate::run::child::{self, Outcome, Runner, Task};
use crate::statistics::median;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Serves a trial if that is what the process was started for, or else runs the program.
pub fn main<S: Task>(program: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == child::TRIAL) {
        return child::serve::<S>();
    }
    program().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// The answers of each lock, one a round; and the signal that came before all rounds had run.
pub type Answers<A> = (Vec<Vec<A>>, Option<i32>);

/// Runs the trials `specs`, one of each lock, in each of so many rounds. Each round begins with
/// another lock. Each trial is a process of its own, and `what` names it in an error.
pub fn take<S: Task>(
    runner: &Runner,
    specs: &[S],
    rounds: u32,
    what: impl Fn(&S) -> String,
) -> Result<Answers<S::Answer>> {
    let mut answers: Vec<Vec<S::Answer>> = specs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds as usize {
        for place in 0..specs.len() {
            let turn = (place + round) % specs.len();
            match runner.run(&specs[turn]).with_context(|| what(&specs[turn]))? {
                Outcome::Done(answer) => answers[turn].push(answer),
                Outcome::Interrupted(signal) => return Ok((answers, Some(signal))),
            }
        }
    }
    Ok((answers, None))
}

/// A figure of a lock by that of another, round by round: the median, the least and the most. None
/// if there is no round.
pub fn ratio<A>(mine: &[A], other: &[A], figure: impl Fn(&A) -> f64) -> Option<(f64, f64, f64)> {
    let ratios: Vec<f64> = mine.iter().zip(other).map(|(a, b)| figure(a) / figure(b)).collect();
    let least = ratios.iter().copied().reduce(f64::min)?;
    Some((median(&ratios), least, ratios.iter().copied().fold(least, f64::max)))
}

/// Where a record will be written.
pub struct Destination {
    name: &'static str,
    given: Option<PathBuf>,
    folder: PathBuf,
}

impl Destination {
    /// Where it is asked for, or beside the records of the benches, under the name of the program.
    ///
    /// # Errors
    /// If no file can be made there. A file that was asked for has been tried before.
    pub fn new(name: &'static str, given: Option<PathBuf>) -> Result<Self> {
        let folder = if given.is_some() { PathBuf::new() } else { report::writable_folder()? };
        Ok(Self { name, given, folder })
    }

    /// Writes the record and says where. Returns the exit code: 128 + N after signal N.
    pub fn write(self, record: &impl Serialize, signal: Option<i32>) -> Result<ExitCode> {
        let ended = if signal.is_some() { Ended::Interrupted } else { Ended::Rounds };
        let own = self.folder.join(report::stem_of(self.name, ended) + ".json");
        let path = self.given.unwrap_or(own);
        std::fs::write(&path, serde_json::to_string_pretty(record)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if signal.is_some() {
            println!("\nThe run was interrupted: what stands above rests on the trials that had ended.");
        }
        println!("\nrecord: {}", path.display());
        Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal as u8)))
    }
}
