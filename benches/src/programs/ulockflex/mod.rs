//! `ulockflex`: Franke's program of 2002, for the locks of today.
//!
//! A number of children run his loop, [uniform work outside, lock, uniform work inside,
//! unlock](crate::workloads::trial), over one or several locks. What they achieve together is the
//! throughput, how evenly they share it the fairness.
//!
//! - `cli` turns the command line into a `plan`: cells (children and workload), and the locks that
//!   run in each (`select`).
//! - A `session` walks through it. Within a cell the locks take turns, run by run, so that a
//!   machine that changes its speed or its load changes it for all of them. [`child`] gives each
//!   run a process of its own and clears up after it.
//! - A `row` is repeated, after one warm-up run, until the 95 % interval of its throughput is
//!   narrow enough, and goes into the `table`.

mod cli;
mod plan;
mod progress;
mod row;
mod select;
mod session;
mod table;

use crate::run::child;
use crate::workloads::trial::TrialSpec;
use session::Session;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == child::TRIAL) {
        return child::serve::<TrialSpec>();
    }
    Session::start(cli::parse()).and_then(Session::measure).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
