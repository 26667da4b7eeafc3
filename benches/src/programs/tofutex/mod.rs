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
use std::process::ExitCode;

/// The version of the record.
pub const SCHEMA: &str = "ulocks-tofutex/1";

/// What a run leaves behind.
pub type Record = turns::RecordOf<TofutexSpec>;
/// A lock in a case.
pub type Row = turns::RowOf<TofutexSpec>;

/// The program.
pub fn main() -> ExitCode {
    turns::main::<TofutexSpec>(cli::parse)
}

/// All tables of a record, with what their columns mean.
pub fn tables(record: &Record) -> String {
    turns::tables::<TofutexSpec>(record)
}

#[cfg(test)]
mod tests;
