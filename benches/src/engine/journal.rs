//! The journal of a row's run, which `--resume` goes on from.
//!
//! It lies beside the record and goes when the records of all rows are written. Every line is JSON,
//! and lines are only ever added: the head, then each trial when it has ended. A run that was
//! killed may leave half a last line, which does not count.
//!
//! A run goes on only if plan, machine and program are those of the head. It has the calibration
//! and the seed of the head, so the order of its trials is the one that the interrupted run would
//! have had.

use super::plan::Order;
use super::record::{Outcome, SCHEMA};
use crate::run::machine::{self, Machine};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A journal that is being written, or none but the clock of a run that needs no journal.
pub struct Journal {
    file: Option<File>,
    /// How long the runs before this one took.
    before: Duration,
    start: Instant,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Head(Box<Head>),
    Done(Done),
}

/// What a run has of its own.
#[derive(Clone, Serialize, Deserialize)]
pub struct Head {
    /// The command that began it.
    pub command: String,
    /// The machine at its start.
    pub machine: Machine,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
    /// Of the order of trials, and of random numbers in them.
    pub seed: u64,
    /// Hashes of the program's file, and of all that is run.
    program: u64,
    plan: u64,
}

/// Something that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        let hash = |bytes: &[u8]| {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            hasher.finish()
        };
        // The file may have been replaced by a build, but the program that runs is the old one.
        let program = std::fs::read("/proc/self/exe").context("cannot read this program")?;
        let jobs: Vec<_> = order.jobs.iter().map(|job| (&job.cell, &job.subjects)).collect();
        let plan = serde_json::to_vec(&(SCHEMA, order.mode, order.window_ms, order.rounds, order.pin, jobs))?;
        Ok(Self {
            command: order.command.clone(),
            machine: machine::describe(),
            iterations_per_us,
            seed,
            program: hash(&program),
            plan: hash(&plan),
        })
    }

    /// What differs from an interrupted run.
    fn differences(&self, old: &Self) -> Vec<&'static str> {
        // Two runs differ in load and date in any case.
        let lasting =
            |of: &Self| Machine { load_average: [0.0; 3], date: String::new(), ..of.machine.clone() };
        let found = [
            ("options", self.plan != old.plan),
            ("program", self.program != old.program),
            ("machine", lasting(self) != lasting(old)),
        ];
        found.into_iter().filter(|found| found.1).map(|found| found.0).collect()
    }
}

impl Journal {
    /// The journal that `order` asks for; without [`Order::resume`] it begins anew. Where it goes on
    /// with a run, `head` becomes that run's, and what had ended is returned. An error says in one line why that cannot be.
    pub fn open(order: &Order, head: &mut Head) -> Result<(Self, Vec<Done>)> {
        let start = Instant::now();
        let Some(path) = &order.journal else {
            return Ok((Self { file: None, before: Duration::ZERO, start }, Vec::new()));
        };
        let mut file = open(path)?;
        let mut done = Vec::new();
        if let Some((old, old_done, length)) = previous(order, head)? {
            (*head, done) = (old, old_done);
            file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0)))?;
        }
        let before = done.last().and_then(|last| Duration::try_from_secs_f64(last.at_s).ok());
        let mut journal = Self { file: Some(file), before: before.unwrap_or_default(), start };
        if done.is_empty() {
            if let Some(file) = &mut journal.file {
                file.set_len(0).and_then(|()| file.rewind())?;
            }
            journal.add(&Line::Head(Box::new(head.clone())))?;
        }
        Ok((journal, done))
    }

    /// How long the run has taken, the time before an interruption included.
    pub fn elapsed(&self) -> Duration {
        self.before + self.start.elapsed()
    }

    /// A trial has ended.
    pub fn done(&mut self, done: &Done) -> Result<()> {
        self.add(&Line::Done(done.clone()))
    }

    /// In one call: another program sees all of a line, or what the kernel got of it.
    fn add(&mut self, line: &Line) -> Result<()> {
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
    let anew = "without --resume a run begins anew";
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if text.is_empty() {
        return Ok(None);
    }
    let run = parse(&text).with_context(|| format!("--resume: {} is damaged; {anew}", path.display()))?;
    let differences = head.differences(&run.0);
    ensure!(
        differences.is_empty(),
        "--resume: the interrupted run had other {}; it was begun with '{}'; {anew}",
        differences.join(", other "),
        run.0.command
    );
    Ok(Some(run))
}

/// A journal that no other run is writing.
fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    // A file system without locks has no say.
    let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    ensure!(!taken, "another run is writing {}", path.display());
    Ok(file)
}

/// The head, what had ended, and the length of all of it in bytes.
fn parse(text: &[u8]) -> Result<(Head, Vec<Done>, u64)> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].split_inclusive(|&byte| byte == b'\n').map(serde_json::from_slice);
    let Some(Ok(Line::Head(head))) = lines.next() else { bail!("its first line is not a head") };
    let mut done = Vec::new();
    for line in lines {
        match line? {
            Line::Head(_) => bail!("it has two heads"),
            Line::Done(trial) => done.push(trial),
        }
    }
    Ok((*head, done, whole as u64))
}
