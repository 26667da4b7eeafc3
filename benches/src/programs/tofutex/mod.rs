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

pub(crate) use trial::cpu_times;
pub use trial::{Section, Times, TofutexSpec};

use crate::report::distinct;
use crate::run::child::{self, Outcome, Runner};
use crate::run::machine::{self, Machine};
use crate::subjects::locks::Entry;
use anyhow::{Context, Result};
use cli::Order;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The version of the record.
pub const SCHEMA: &str = "ulocks-tofutex/1";

/// What a run leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The version of what it writes.
    pub schema: String,
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
    if std::env::args_os().nth(1).is_some_and(|argument| argument == child::TRIAL) {
        return child::serve::<TofutexSpec>();
    }
    run(&cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(order: &Order) -> Result<ExitCode> {
    let runner = Runner::new()?;
    let mut record = Record {
        schema: SCHEMA.into(),
        machine: machine::describe(),
        threads: order.threads,
        rows: Vec::new(),
    };
    println!("tofutex: {} threads, {} rounds; {}", order.threads, order.rounds, record.machine);
    for (section, operations) in order.sections {
        let each = (operations / u64::from(order.threads)).max(1);
        let spec =
            |lock: &Entry| TofutexSpec { lock: lock.name.into(), section, threads: order.threads, each };
        let mut rows: Vec<Row> = order
            .locks
            .iter()
            .map(|lock| {
                let operations = each * u64::from(order.threads);
                Row { section, operations, lock: lock.name.into(), rounds: Vec::new() }
            })
            .collect();
        for round in 0..order.rounds {
            for place in 0..rows.len() {
                let turn = (place + round as usize) % rows.len();
                let lock = order.locks[turn];
                let trial = runner.run(&spec(lock)).with_context(|| format!("{}, {section}", lock.name))?;
                match trial {
                    Outcome::Done(times) => rows[turn].rounds.push(times),
                    Outcome::Interrupted(signal) => return Ok(ExitCode::from(128 + signal as u8)),
                }
            }
        }
        print!("{}", text::table(section, &rows));
        record.rows.extend(rows);
    }
    println!("\n{}", text::NOTES);
    let path = write(order.json.as_deref(), &record)?;
    println!("\nrecord: {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// All tables of a record, with what their columns mean.
pub fn tables(record: &Record) -> String {
    let sections = distinct(record.rows.iter().map(|row| row.section));
    let of = |section| record.rows.iter().filter(|row| row.section == section).cloned().collect::<Vec<_>>();
    let tables = sections.into_iter().map(|section| text::table(section, &of(section)));
    format!("{} threads\n{}\n{}\n", record.threads, tables.collect::<String>(), text::NOTES)
}

fn write(path: Option<&Path>, record: &Record) -> Result<PathBuf> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => crate::report::folder()?.join("tofutex.json"),
    };
    let text = serde_json::to_string_pretty(record)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests;
