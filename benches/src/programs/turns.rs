//! What the programs of Molnar and Long share: a main function, locks that take turns, the ratio of
//! two of them, and a record.

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

/// The answers of each lock, one a round; or the exit code of a run that a signal ended.
pub type Answers<A> = std::result::Result<Vec<Vec<A>>, ExitCode>;

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
                Outcome::Interrupted(signal) => return Ok(Err(ExitCode::from(128 + signal as u8))),
            }
        }
    }
    Ok(Ok(answers))
}

/// A figure of a lock by that of another, round by round: the median, the least and the most. None
/// if there is no round.
pub fn ratio<A>(mine: &[A], other: &[A], figure: impl Fn(&A) -> f64) -> Option<(f64, f64, f64)> {
    let ratios: Vec<f64> = mine.iter().zip(other).map(|(a, b)| figure(a) / figure(b)).collect();
    let least = ratios.iter().copied().reduce(f64::min)?;
    Some((median(&ratios), least, ratios.iter().copied().fold(least, f64::max)))
}

/// Writes the record of the program called `name`, where it is asked for or beside the records of
/// the benches, and says where.
pub fn write(json: Option<PathBuf>, name: &str, record: &impl Serialize) -> Result<()> {
    let path = json.map_or_else(|| Ok(crate::report::folder()?.join(format!("{name}.json"))), anyhow::Ok)?;
    std::fs::write(&path, serde_json::to_string_pretty(record)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\nrecord: {}", path.display());
    Ok(())
}
