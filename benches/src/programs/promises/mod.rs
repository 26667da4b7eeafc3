//! `promises`: what the locks of the family are said to do, against what they do on this machine.
//!
//! One row a promise ([`list`]): what, the measured ratio with its interval, the bound, and a
//! verdict ([`judge`]). One round is every trial that the promises need once ([`harness`]). A
//! promise whose lock does not exist yet is listed as not built; one that could not be measured
//! says why. A promise that falls short is a result, not a failure.

mod condvar;
pub mod judge;
pub mod list;
mod plan;
pub mod promise;
mod readers;
mod semarray;
mod text;

use crate::programs::harness;
use crate::programs::options::BenchOptions;
use crate::report::Mode;
use crate::run::{busy_work, machine};
use crate::subjects::locks;
use crate::subjects::rwlocks;
use judge::Row;
use promise::Promise;
use std::io::Write;
use std::process::ExitCode;

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "promises";

/// The version of the record.
pub const SCHEMA: &str = "ulocks-promises/1";

/// What a run leaves behind: the promises, what became of them, and the trials.
pub type Record = harness::Record<Row>;

/// The whole program.
pub fn main() -> ExitCode {
    harness::main(NAME, measure)
}

/// The promises that `options` ask for: of some locks, with a part of a name, or the few of a quick
/// look.
fn selected(options: &BenchOptions, mode: Mode, cpus: u32) -> Vec<Promise> {
    let mut promises = list::all(cpus);
    if let Some(only) = &options.only {
        promises.retain(|promise| promise.name.contains(only.as_str()));
    } else if mode != Mode::Full {
        promises.retain(|promise| promise.quick);
    }
    if let Some(locks) = &options.locks {
        promises.retain(|promise| locks.0.iter().any(|entry| entry.lock == promise.lock));
    }
    promises
}

/// Whether the lock that the promise is about exists.
pub fn is_built(lock: &str) -> bool {
    locks::Entry::find(lock).is_ok() || rwlocks::Entry::find(lock).is_ok()
}

/// Measures, and writes table and record; returns the signal that came in between.
fn measure(options: &BenchOptions) -> anyhow::Result<Option<i32>> {
    let mode = options.mode();
    let machine = machine::describe();
    let cpus = u32::try_from(machine.cpus_allowed).unwrap_or(u32::MAX).max(1);
    let promises = selected(options, mode, cpus);
    if promises.is_empty() {
        eprintln!("{NAME}: nothing that was asked for is promised");
        return Ok(None);
    }
    let measurable = promises.iter().filter(|promise| is_built(promise.lock) && promise.obstacle.is_none());
    let measurable: Vec<Promise> = measurable.cloned().collect();
    let window_ms = options.seconds.map(|s| (s.as_millis() as u64).max(1));
    let plan = plan::plan(mode, &measurable, window_ms, options.rounds, busy_work::calibrate());
    let (mut record, signal) = Record::measure(NAME, SCHEMA, mode, machine, &plan)?;
    record.rows = promises
        .iter()
        .map(|promise| judge::judge(promise, is_built(promise.lock), &record.trials))
        .collect();
    // A reader that closes the pipe has seen enough; the file is written all the same.
    let _ = std::io::stdout().lock().write_all(text::tables(&record).as_bytes());
    record.write(NAME)?;
    Ok(signal)
}

#[cfg(test)]
mod tests;
