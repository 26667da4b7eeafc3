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
use std::process::ExitCode;

/// The version of the record.
pub const SCHEMA: &str = "ulocks-test-mutex/1";

/// What he measured of mutexes by semaphores: machine, loops a second, CPU use. 16 tasks each.
pub const THEN: [(&str, f64, f64); 2] = [
    ("8-way x86", 84_153.0 / 34_713.0, 22.0 / 63.0),
    ("2-way P4 with hyper-threading", 181_082.0 / 127_659.0, 34.0 / 100.0),
];

/// What a run leaves behind.
pub type Record = turns::RecordOf<TestMutexSpec>;
/// A lock in a case.
pub type Row = turns::RowOf<TestMutexSpec>;

/// The program.
pub fn main() -> ExitCode {
    turns::main::<TestMutexSpec>(cli::parse)
}

/// All tables of a record, with what their columns mean.
pub fn tables(record: &Record) -> String {
    turns::tables::<TestMutexSpec>(record)
}

#[cfg(test)]
mod tests;
