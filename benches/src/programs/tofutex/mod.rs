//! `tofutex`: the program of Long's mail of 2016, for the locks of today.
//!
//! Each of many threads locks and unlocks one lock a number of times, and notes when it is done. So
//! the spread of the threads' times shows fairness, and the last of them throughput. Beside that
//! stand the system time and the calls by which locks and unlocks entered the kernel. His section
//! is short in one table, and sleeps for a microsecond in the other.
//!
//! His figures and ours are of different machines. So what is compared is the ratio of two locks
//! then with the ratio of the same two locks now ([`seed`]).
//!
//! The locks take turns, round by round, each trial in a process of its own.

mod cli;
pub mod seed;
mod text;
mod trial;

pub use trial::{Section, Times, TofutexSpec};

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
pub const SCHEMA: &str = "ulocks-tofutex/1";

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
    /// How many threads want the lock.
    pub threads: u32,
    /// One for each section and lock.
    pub rows: Vec<Row>,
}

/// A lock with one section.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What a thread does while it holds the lock.
    pub section: Section,
    /// Acquisitions of all threads together.
    pub operations: u64,
    /// The lock's name in the registry.
    pub lock: String,
    /// A trial for each round.
    pub rounds: Vec<Times>,
}

/// The program.
pub fn main() -> ExitCode {
    turns::main::<TofutexSpec>(|| run(cli::parse()))
}

fn run(order: Arguments) -> Result<ExitCode> {
    let runner = Runner::new()?;
    let destination = turns::Destination::new("tofutex", order.json)?;
    let mut signal = None;
    let threads = order.threads;
    let mut record = Record {
        schema: SCHEMA.into(),
        ended: Ended::Rounds,
        machine: machine::describe(),
        threads,
        rows: Vec::new(),
    };
    println!("tofutex: {threads} threads, {} rounds; {}", order.rounds, record.machine);
    for (section, operations) in [(Section::Short, order.operations), (Section::Sleep, order.sleeps)] {
        let each = (operations / u64::from(threads)).max(1);
        let spec = |lock: &&Entry| TofutexSpec { lock: lock.name.into(), section, threads, each };
        let specs: Vec<_> = order.locks.0.iter().map(spec).collect();
        let what = |spec: &TofutexSpec| format!("{}, {section}", spec.lock);
        let (answers, interrupted) = turns::take(&runner, &specs, order.rounds, what)?;
        let operations = each * u64::from(threads);
        let row = |(spec, rounds): (TofutexSpec, _)| Row { section, operations, lock: spec.lock, rounds };
        let ran = specs.into_iter().zip(answers).filter(|(_, rounds)| !rounds.is_empty());
        let rows: Vec<Row> = ran.map(row).collect();
        if !rows.is_empty() {
            print!("{}", text::table(section, &rows));
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
    let sections = distinct(record.rows.iter().map(|row| row.section));
    let of = |section| record.rows.iter().filter(|row| row.section == section).cloned().collect::<Vec<_>>();
    let tables = sections.into_iter().map(|section| text::table(section, &of(section)));
    format!("{} threads\n{}\n{}\n", record.threads, tables.collect::<String>(), text::NOTES)
}

#[cfg(test)]
mod tests;
