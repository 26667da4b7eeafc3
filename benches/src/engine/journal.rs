//! The journal of a row's run, which `--resume` goes on from.
//!
//! It lies beside the record and goes when the records of all rows are written. Every line is JSON,
//! and lines are only ever added: the head, then each trial when it has ended. A run that was
//! killed may leave half a last line, which does not count.
//!
//! A run goes on only if command, machine and program are those of the head, and hence the plan. It
//! has the calibration and the seed of the head, so the order of its trials is the one that the
//! interrupted run would have had.

use super::plan::Order;
use super::record::Outcome;
use crate::run::machine::{self, Machine};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

/// A journal that is being written, or none but the clock of a run that needs no journal.
pub struct Journal {
    file: Option<File>,
    /// How long the runs before this one took.
    before: Duration,
    start: Instant,
}

/// The first line: what a run has of its own.
#[derive(Serialize, Deserialize)]
pub struct Head {
    /// The command that began it.
    pub command: String,
    /// The machine at its start.
    pub machine: Machine,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
    /// Of the order of trials, and of random numbers in them.
    pub seed: u64,
    /// A hash of the program's file.
    program: u64,
}

/// Another line: a trial that has ended.
#[derive(Serialize, Deserialize)]
pub struct Done {
    /// How long the run had taken by then.
    pub at_s: f64,
    /// Its place in its round.
    pub turn: (usize, Option<usize>),
    /// What it gave, one for each subject.
    pub outcomes: Vec<Outcome>,
}

impl Head {
    /// Of a run that begins now.
    pub fn new(order: &Order, iterations_per_us: f64, seed: u64) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        // The file may have been replaced by a build, but the program that runs is the old one.
        hasher.write(&std::fs::read("/proc/self/exe").context("cannot read this program")?);
        let (command, program) = (order.command.clone(), hasher.finish());
        Ok(Self { command, machine: machine::describe(), iterations_per_us, seed, program })
    }

    /// What differs from an interrupted run.
    fn differences(&self, old: &Self) -> Vec<&'static str> {
        // Two runs differ in load and date in any case.
        let lasting =
            |of: &Self| Machine { load_average: [0.0; 3], date: String::new(), ..of.machine.clone() };
        let found = [
            ("options", self.command != old.command),
            ("program", self.program != old.program),
            ("machine", lasting(self) != lasting(old)),
        ];
        found.into_iter().filter(|found| found.1).map(|found| found.0).collect()
    }
}

impl Journal {
    /// The journal that `order` asks for; without [`Order::resume`] it begins anew. Where it goes
    /// on with a run, `head` becomes that run's, and what had ended is returned.
    ///
    /// # Errors
    /// In one line, why that cannot be.
    pub fn open(order: &Order, head: &mut Head) -> Result<(Self, Vec<Done>)> {
        let mut journal = Self { file: None, before: Duration::ZERO, start: Instant::now() };
        let Some(path) = &order.journal else { return Ok((journal, Vec::new())) };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
        // A file system without locks has no say.
        let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        ensure!(!taken, "another run is writing {}", path.display());
        if let Some((old, done, length)) = previous(order, head)? {
            file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0)))?;
            let took_s = done.last().map_or(0.0, |last| last.at_s);
            journal.before = Duration::try_from_secs_f64(took_s).unwrap_or_default();
            journal.file = Some(file);
            *head = old;
            return Ok((journal, done));
        }
        file.set_len(0)?;
        journal.file = Some(file);
        journal.add(head)?;
        Ok((journal, Vec::new()))
    }

    /// How long the run has taken, the time before an interruption included.
    pub fn elapsed(&self) -> Duration {
        self.before + self.start.elapsed()
    }

    /// Adds a line, in one call: another program sees all of it, or what the kernel got of it.
    pub fn add(&mut self, line: &impl Serialize) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let text = serde_json::to_string(line)? + "\n";
        file.write_all(text.as_bytes()).context("cannot write the journal of this run")
    }
}

/// Whether the run in the journal, if `order` goes on with one, is what it orders.
pub fn check(order: &Order) -> Result<()> {
    previous(order, &Head::new(order, 0.0, 0)?).map(drop)
}

/// The run in the journal that `order` goes on with, if there is one, and its length in bytes.
fn previous(order: &Order, head: &Head) -> Result<Option<(Head, Vec<Done>, u64)>> {
    let Some(path) = order.journal.as_ref().filter(|path| order.resume && path.exists()) else {
        return Ok(None);
    };
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].split_inclusive(|&byte| byte == b'\n');
    let Some(first) = lines.next() else { return Ok(None) };
    let anew = "without --resume a run begins anew";
    let damaged = || format!("--resume: {} is damaged; {anew}", path.display());
    let old: Head = serde_json::from_slice(first).with_context(damaged)?;
    let differences = head.differences(&old);
    ensure!(
        differences.is_empty(),
        "--resume: the interrupted run had other {}; it was begun with '{}'; {anew}",
        differences.join(", other "),
        old.command
    );
    let done: Result<_, _> = lines.map(serde_json::from_slice).collect();
    Ok(Some((old, done.with_context(damaged)?, whole as u64)))
}
