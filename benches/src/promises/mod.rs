//! `promises`: what the locks of the family are said to do, against what they do on this machine.
//!
//! One row a promise ([`list`]): what, the measured ratio with its interval, the bound, and a verdict ([`judge`]). One
//! round is every trial that the promises need once, in random order, each in a process of its own ([`keeper`]): the
//! locks of a comparison run minutes apart at most, under whatever the machine does to that round. A promise whose lock
//! does not exist yet is listed as not built; one that could not be measured says why.
//!
//! The table goes to standard output, progress to standard error, and everything to `promises.json` (`-quick`,
//! `-smoke`) in `ulocks-report` in the target directory: schema, machine, rows, and every trial, from which the rows can
//! be computed again.
//!
//! Exit codes are those of [`scaling`](crate::scaling). A promise that falls short is a result, not a failure.

pub mod judge;
pub mod list;
pub mod plan;
pub mod task;
mod text;

use crate::keeper::{self, Keeper, Outcome};
use crate::locks;
use crate::machine::{self, Machine};
use crate::options::{self, BenchOptions};
use crate::report::{self, Ended, Mode};
use crate::status::StatusLine;
use crate::work;
use anyhow::Context;
use clap::Parser;
use judge::Row;
use list::Promise;
use plan::Plan;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use task::{Job, Probe, Trial};

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "promises";

/// The version of the record.
pub const SCHEMA: &str = "ulocks-promises/1";

/// What a run leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the package that wrote it.
    pub version: String,
    /// How much the run can support.
    pub mode: Mode,
    /// Why it ended.
    pub ended: Ended,
    /// Length of the run.
    pub took_s: f64,
    /// The machine it ran on, at the start of the run.
    pub machine: Machine,
    /// Window of a loop; other trials take multiples of it.
    pub window_ms: u64,
    /// Rounds that were meant to run.
    pub rounds: u32,
    /// Iterations of the busy work in a microsecond, one constant for all trials.
    pub iterations_per_us: f64,
    /// Of the order of trials and of the workers' random numbers.
    pub seed: u32,
    /// The promises, and what became of them.
    pub rows: Vec<Row>,
    /// Every trial in the order they ran.
    pub trials: Vec<Trial>,
}

/// Holds the family to its promises: one row each, measured, bound and verdict.
#[derive(Parser)]
#[command(name = NAME)]
struct Cli {
    #[command(flatten)]
    options: BenchOptions,
}

/// The whole program.
pub fn main() -> ExitCode {
    let has = |flag: &str| std::env::args_os().skip(1).any(|a| a == OsStr::new(flag));
    if has(keeper::TRIAL) {
        return keeper::serve::<Job>();
    }
    let Cli { options } = options::parse_bench();
    if !options.selects(NAME) {
        return ExitCode::SUCCESS;
    }
    if has("--list") {
        println!("{NAME}: benchmark");
        return ExitCode::SUCCESS;
    }
    match measure(&options) {
        Ok(Some(signal)) => ExitCode::from(128 + signal as u8),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{NAME}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The promises that `options` ask for: of some locks, with a part of a name, or the few of a quick look.
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
fn is_built(promise: &Promise) -> bool {
    locks::find(promise.lock).is_ok()
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
    let iterations_per_us = work::calibrate();
    let measurable = promises.iter().filter(|promise| is_built(promise) && promise.obstacle.is_none());
    let measurable: Vec<Promise> = measurable.cloned().collect();
    let window_ms = options.seconds.map(|s| (s.as_millis() as u64).max(1));
    let plan = Plan::new(mode, &measurable, window_ms, options.rounds, iterations_per_us);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut record = Record {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        mode,
        ended: Ended::Rounds,
        took_s: 0.0,
        machine,
        window_ms: plan.lengths.window_ms,
        rounds: plan.rounds,
        iterations_per_us,
        seed: now.subsec_nanos(),
        rows: Vec::new(),
        trials: Vec::new(),
    };
    eprintln!("{NAME}: {plan}");
    let start = Instant::now();
    let signal = rounds(&mut record, &plan)?;
    record.took_s = start.elapsed().as_secs_f64();
    record.rows =
        promises.iter().map(|promise| judge::judge(promise, is_built(promise), &record.trials)).collect();
    // A reader that closes the pipe has seen enough; the file is written all the same.
    let _ = std::io::stdout().lock().write_all(text::tables(&record).as_bytes());
    write(&record)?;
    Ok(signal)
}

/// Runs the rounds, or those before a signal, which it returns.
fn rounds(record: &mut Record, plan: &Plan) -> anyhow::Result<Option<i32>> {
    let keeper = Keeper::new()?;
    let line = StatusLine::new();
    let start = Instant::now();
    for round in 0..plan.rounds {
        let seed = u64::from(record.seed) + u64::from(round);
        for (done, probe) in plan.round(seed).into_iter().enumerate() {
            line.show(&format!(
                "round {}/{}  trial {}/{}  {}  {}",
                round + 1,
                plan.rounds,
                done + 1,
                plan.probes.len(),
                report::clock(start.elapsed().as_secs_f64()),
                describe(probe)
            ));
            let job = probe.job(plan.lengths, seed + record.trials.len() as u64);
            let outcome = keeper.run(&job).with_context(|| {
                line.clear();
                describe(probe)
            })?;
            match outcome {
                Outcome::Done(answer) => {
                    let Probe { cell, locks } = probe.clone();
                    record.trials.push(Trial { round, locks, cell, answer });
                }
                Outcome::Interrupted(signal) => {
                    line.clear();
                    record.ended = Ended::Interrupted;
                    return Ok(Some(signal));
                }
            }
        }
        if !line.is_shown() {
            eprintln!(
                "round {} of {}, {} min",
                round + 1,
                plan.rounds,
                report::clock(start.elapsed().as_secs_f64())
            );
        }
    }
    line.clear();
    Ok(None)
}

/// A trial in words, for progress and errors.
fn describe(probe: &Probe) -> String {
    let locks = probe.locks.join(", ");
    match probe.cell {
        task::Cell::Loop { workload, workers, .. } => {
            format!("{locks}, {} workers, {}", workers.count(), report::describe(workload))
        }
        task::Cell::Duel { hogs, victims, .. } => format!("{locks}, {hogs} hogs, {victims} victims"),
        task::Cell::Handoff => format!("{locks}, hand-overs"),
        task::Cell::Pairs => format!("{locks}, uncontended"),
    }
}

fn write(record: &Record) -> anyhow::Result<()> {
    let name = match record.mode {
        Mode::Full => format!("{NAME}.json"),
        Mode::Quick => format!("{NAME}-quick.json"),
        Mode::Smoke => format!("{NAME}-smoke.json"),
    };
    let path = report::folder()?.join(name);
    let json = report::one_trial_a_line(serde_json::to_value(record)?);
    std::fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{NAME}: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests;
