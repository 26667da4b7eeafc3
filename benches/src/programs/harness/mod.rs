//! The harness of the programs that compare subjects in rounds.
//!
//! A [`Program`] says which rows its tables have, which trials these need, and what becomes of the
//! trials. One round is each of these trials once, in random order, each in a process of its own
//! ([`child`]): what is compared runs minutes apart at most, under whatever the machine does to
//! that round.
//!
//! The tables go to standard output, progress to standard error, and everything to `NAME.json`
//! (`-quick`, `-smoke`) in `ulocks-report` in the target directory: schema, machine, rows, and
//! every trial, from which the rows can be computed again.

pub mod comparison;
pub mod plan;
mod record;

pub use record::Record;

use crate::programs::options::{self, BenchOptions};
#[cfg(test)]
use crate::programs::shares;
use crate::report::Mode;
use crate::run::child::{self, Task};
use crate::run::{busy_work, machine};
use crate::subjects::locks::Entry;
use crate::workloads::cell::{Job, Probe, Trial};
use anyhow::Result;
use clap::Parser;
use plan::{Effort, Plan};
use serde::Serialize;
use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// A program that compares subjects in rounds: a list of rows, the trials they need, and tables.
pub trait Program: Sized {
    /// What it is called, for cargo's filters and its files.
    const NAME: &'static str;
    /// The version of its record.
    const SCHEMA: &'static str;
    /// Its command line.
    type Cli: Parser + AsRef<BenchOptions>;
    /// What will be a row.
    type Subject: Subject;

    /// The length of a window, if it is given.
    fn window(cli: &Self::Cli) -> Option<Duration> {
        cli.as_ref().seconds
    }

    /// Its share of `cargo bench`, of `cargo bench -- --quick`, or of `cargo test`.
    fn effort(mode: Mode) -> Effort;

    /// What can become a row on a machine with so many CPUs, in the order of the tables.
    fn subjects(cli: &Self::Cli, mode: Mode, cpus: u32) -> Vec<Self::Subject>;

    /// The trials that the rows need, each once a round, and those that the first round alone has.
    fn trials(subjects: &[Self::Subject]) -> (Vec<Probe>, Vec<Probe>);

    /// What goes to standard output.
    fn tables(record: &RecordOf<Self>) -> String;
}

/// What a run of `P` leaves behind.
pub type RecordOf<P> = Record<<<P as Program>::Subject as Subject>::Row>;

/// What will be a row.
pub trait Subject {
    /// The row.
    type Row: Serialize;

    /// The name of the row, which `--only` looks at.
    fn name(&self) -> String;

    /// Whether `--locks` means this row when it names `lock`.
    fn is_about(&self, lock: &Entry) -> bool;

    /// What the trials come to; nothing if there are none.
    fn row(&self, trials: &[Trial]) -> Option<Self::Row>;
}

/// The command line of a program that has no options of its own.
#[derive(Parser)]
pub struct Cli {
    #[command(flatten)]
    options: BenchOptions,
}

impl AsRef<BenchOptions> for Cli {
    fn as_ref(&self) -> &BenchOptions {
        &self.options
    }
}

/// The whole program `P`.
pub fn main<P: Program>() -> ExitCode {
    main_with::<Job, P::Cli>(P::NAME, measure::<P>)
}

/// A program called `name` whose trials are `T`, and whose `measure` returns the signal that ended
/// it early.
///
/// Exit codes: 0; 1 when a trial fails (a lock that lost an update, a trial that hung) or a file
/// cannot be written; 2 for wrong options; 128 + N after signal N (Ctrl-C, SIGTERM, SIGHUP), which
/// leaves a record of the trials that had ended.
pub fn main_with<T: Task, C: Parser + AsRef<BenchOptions>>(
    name: &str,
    measure: impl FnOnce(&C) -> Result<Option<i32>>,
) -> ExitCode {
    let has = |flag: &str| std::env::args_os().skip(1).any(|a| a == OsStr::new(flag));
    if has(child::TRIAL) {
        return child::serve::<T>();
    }
    let cli: C = options::parse_bench();
    if !cli.as_ref().selects(name) {
        return ExitCode::SUCCESS;
    }
    if has("--list") {
        println!("{name}: benchmark");
        return ExitCode::SUCCESS;
    }
    match measure(&cli) {
        Ok(Some(signal)) => ExitCode::from(128 + signal as u8),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The rows that are asked for, in the order of the tables.
pub(super) fn selected<P: Program>(cli: &P::Cli, mode: Mode, cpus: u32) -> Vec<P::Subject> {
    let options = cli.as_ref();
    let mut subjects = P::subjects(cli, mode, cpus);
    if let Some(part) = &options.only {
        subjects.retain(|subject| subject.name().contains(part.as_str()));
    }
    if let Some(named) = &options.locks {
        subjects.retain(|subject| named.0.iter().any(|lock| subject.is_about(lock)));
    }
    subjects
}

/// What is run for these rows, how long, and how often.
pub(super) fn plan<P: Program>(
    cli: &P::Cli,
    mode: Mode,
    subjects: &[P::Subject],
    iterations_per_us: f64,
) -> Plan {
    let (probes, once) = P::trials(subjects);
    let window_ms = P::window(cli).map(|window| (window.as_millis() as u64).max(1));
    let effort = if cli.as_ref().full { P::effort(mode).in_full() } else { P::effort(mode) };
    Plan::new(effort, probes, once, window_ms, cli.as_ref().rounds, iterations_per_us)
}

/// Measures, and writes tables and record; returns the signal that came in between.
fn measure<P: Program>(cli: &P::Cli) -> Result<Option<i32>> {
    let (mode, machine) = (cli.as_ref().mode(), machine::describe());
    let cpus = u32::try_from(machine.cpus_allowed).unwrap_or(u32::MAX).max(1);
    let subjects = selected::<P>(cli, mode, cpus);
    if subjects.is_empty() {
        eprintln!("{}: no row is of these --locks and has a name that contains this --only", P::NAME);
        return Ok(None);
    }
    crate::report::writable_folder()?;
    let plan = plan::<P>(cli, mode, &subjects, busy_work::calibrate());
    let (mut record, signal) = Record::measure((P::NAME, P::SCHEMA), mode, machine, &plan)?;
    record.rows = subjects.iter().filter_map(|subject| subject.row(&record.trials)).collect();
    // A reader that closes the pipe has seen enough; the files are written all the same.
    let _ = std::io::stdout().lock().write_all(P::tables(&record).as_bytes());
    record.write(P::NAME)?;
    Ok(signal)
}

/// The rows that are asked for by these arguments, on two CPUs.
#[cfg(test)]
pub(super) fn asked<P: Program>(arguments: &[&str], mode: Mode) -> (P::Cli, Vec<P::Subject>) {
    let cli = P::Cli::parse_from([P::NAME].iter().chain(arguments));
    let subjects = selected::<P>(&cli, mode, 2);
    (cli, subjects)
}

/// What runs without arguments takes no longer than its share of `cargo bench` or of a quick look;
/// these have at least so many rounds. A smoke run takes at most so many seconds.
#[cfg(test)]
pub(super) fn keeps_the_time<P: Program>(smoke_s: f64, least_rounds: u32) {
    let limits_s = [shares::full(P::NAME) as f64, shares::quick(P::NAME) as f64, smoke_s];
    for (mode, limit_s) in [Mode::Full, Mode::Quick, Mode::Smoke].into_iter().zip(limits_s) {
        let (cli, subjects) = asked::<P>(&[], mode);
        let plan = plan::<P>(&cli, mode, &subjects, 1000.0);
        let takes_s = plan.takes_s();
        assert!(takes_s <= limit_s, "{}, {mode:?}: {takes_s} s, {plan}", P::NAME);
        assert!(plan.limit().is_some_and(|limit| limit.as_secs_f64() >= 1.99 * takes_s), "{plan}");
        assert!(mode == Mode::Smoke || plan.rounds >= least_rounds, "{plan}");
    }
}
