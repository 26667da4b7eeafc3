//! `test-mutex`: the programs of Molnar's mail of 2005, for the locks of today.
//!
//! Tasks do one thing over and over for some time. Counted are the loops of all tasks a second, how
//! much of the CPUs they use, and the loops of a CPU second. There are two cases:
//!
//! - *lock*: acquire, add one to a number, release.
//! - *files*: create, unlink and close a file of the task's own in one directory. His files were in
//!   /tmp, and the lock was the kernel's, of the directory. Here the directory is a tree in memory
//!   under the lock that is measured, so a loop acquires it twice.
//!
//! He compared a kernel with semaphores and one with mutexes. So the rows are ratios to the first
//! lock, a semaphore in the order of arrival, and his are those of the mutexes to the semaphores
//! ([`THEN`]).
//!
//! The locks take turns, round by round, each trial in a process of its own.

mod cli;
mod text;
mod trial;

pub use trial::{Case, Count, TestMutexSpec};

use crate::programs::turns;
use crate::report::{Ended, distinct};
use crate::run::child::Runner;
use crate::run::machine::{self, Machine};
use crate::subjects::locks::Entry;
use anyhow::Result;
use cli::Arguments;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// The version of the record.
pub const SCHEMA: &str = "ulocks-test-mutex/1";

/// What he measured of mutexes by semaphores: machine, loops a second, CPU use. 16 tasks each.
pub const THEN: [(&str, f64, f64); 2] = [
    ("8-way x86", 84_153.0 / 34_713.0, 22.0 / 63.0),
    ("2-way P4 with hyper-threading", 181_082.0 / 127_659.0, 34.0 / 100.0),
];

/// What a run leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The version of what it writes.
    pub schema: String,
    /// Why it ended.
    #[serde(default)]
    pub ended: Ended,
    /// The machine it ran on, at the start of the run.
    pub machine: Machine,
    /// How many tasks there are.
    pub tasks: u32,
    /// One for each case and lock.
    pub rows: Vec<Row>,
}

/// A lock in a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What a task does.
    pub case: Case,
    /// The lock's name in the registry.
    pub lock: String,
    /// A trial for each round.
    pub rounds: Vec<Count>,
}

/// The program.
pub fn main() -> ExitCode {
    turns::main::<TestMutexSpec>(|| run(cli::parse()))
}

fn run(order: Arguments) -> Result<ExitCode> {
    let runner = Runner::new()?;
    let destination = turns::Destination::new("test-mutex", order.json)?;
    let mut signal = None;
    let (tasks, window_ms) = (order.tasks, (order.seconds.as_millis() as u64).max(1));
    let mut record = Record {
        schema: SCHEMA.into(),
        ended: Ended::Rounds,
        machine: machine::describe(),
        tasks,
        rows: Vec::new(),
    };
    println!("test-mutex: {tasks} tasks, {} rounds; {}", order.rounds, record.machine);
    for case in Case::ALL {
        let spec = |lock: &&Entry| TestMutexSpec { lock: lock.name.into(), case, tasks, window_ms };
        let specs: Vec<_> = order.locks.0.iter().map(spec).collect();
        let what = |spec: &TestMutexSpec| format!("{}, {case}", spec.lock);
        let (answers, interrupted) = turns::take(&runner, &specs, order.rounds, what)?;
        let row = |(spec, rounds): (TestMutexSpec, _)| Row { case, lock: spec.lock, rounds };
        let ran = specs.into_iter().zip(answers).filter(|(_, rounds)| !rounds.is_empty());
        let rows: Vec<Row> = ran.map(row).collect();
        if !rows.is_empty() {
            print!("{}", text::table(case, &rows));
        }
        record.rows.extend(rows);
        if interrupted.is_some() {
            (signal, record.ended) = (interrupted, Ended::Interrupted);
            break;
        }
    }
    println!("\n{}", text::NOTES);
    destination.write(&record, signal)
}

/// All tables of a record, with what their columns mean.
pub fn tables(record: &Record) -> String {
    let cases = distinct(record.rows.iter().map(|row| row.case));
    let of = |case| record.rows.iter().filter(|row| row.case == case).cloned().collect::<Vec<_>>();
    let tables = cases.into_iter().map(|case| text::table(case, &of(case)));
    format!("{} tasks\n{}\n{}\n", record.tasks, tables.collect::<String>(), text::NOTES)
}

/// The median over rounds of `figure` of `lock` by that of `other`, in the case with files.
pub fn ratio(record: &Record, lock: &str, other: &str, figure: fn(&Count) -> f64) -> Option<f64> {
    let find = |lock: &str| record.rows.iter().find(|row| row.case == Case::Files && row.lock == lock);
    turns::ratio(&find(lock)?.rounds, &find(other)?.rounds, figure).map(|(middle, ..)| middle)
}

#[cfg(test)]
mod tests;
