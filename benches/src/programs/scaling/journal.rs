//! The journal of a run, which `--resume` goes on from.
//!
//! It lies beside the record and goes when the record of a whole run is written. Every line is
//! JSON, and lines are only ever added: the head, then each trial when it has ended, and a line for
//! each time that a run went on. A run that was killed may leave half a last line, which does not
//! count.
//!
//! The head is a record without trials, and says which program wrote it. A run goes on only if
//! plan, machine and program are those of the head. It has the calibration and the seed of the
//! head, so the order of its trials is the one that the interrupted run would have had.

use super::plan::Plan;
use crate::report::{Report, Trial};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A journal that is being written.
pub struct Journal {
    file: File,
    path: PathBuf,
    /// How long the runs before this one took.
    before: Duration,
    start: Instant,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Head(Box<Head>),
    Trial(Box<Ended>),
    /// The moment, as [`crate::run::machine::Machine`] has it.
    Resumed(String),
}

/// What a run must have in common with the one that it goes on with.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The command line, without the program.
    arguments: Vec<String>,
    /// Of the program's file.
    program: String,
    /// Without trials.
    report: Report,
}

/// A trial that has ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    /// How long the run had taken by then.
    at_s: f64,
    trial: Trial,
}

impl Journal {
    /// A journal of `report`, which has no trials yet. That of an interrupted run is kept under
    /// another name.
    pub fn begin(path: &Path, report: &Report) -> Result<Self> {
        let mut file = open(path, true)?;
        if file.metadata().is_ok_and(|file| file.len() > 0) {
            let old = path.with_extension("journal.old");
            std::fs::rename(path, &old).with_context(|| format!("cannot rename {}", path.display()))?;
            eprintln!(
                "{}: begins anew; what an interrupted run had done is in {}",
                super::NAME,
                old.display()
            );
            file = open(path, true)?;
        }
        let mut journal = Self { file, path: path.to_owned(), before: Duration::ZERO, start: Instant::now() };
        journal.add(&Line::Head(Box::new(Head::new(report)?)))?;
        Ok(journal)
    }

    /// Goes on with the run in the journal: `report`, which is the head of a new run, becomes what
    /// that run had come to. An error says in one line why that cannot be.
    pub fn resume(path: &Path, report: &mut Report, plan: &Plan) -> Result<Self> {
        let anew = "without --resume a run begins anew";
        ensure!(path.exists(), "--resume: there is no interrupted run in {}; {anew}", path.display());
        let mut file = open(path, false)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let (head, lines, length) =
            parse(&text).with_context(|| format!("--resume: {} is damaged; {anew}", path.display()))?;
        let differences = Head::new(report)?.differences(&head)?;
        if !differences.is_empty() {
            bail!(
                "--resume: the interrupted run is another one: {}; it was begun with '{}'; {anew}",
                differences.join(", "),
                head.arguments.join(" ")
            );
        }
        let now = std::mem::replace(&mut report.machine, head.report.machine).date;
        report.options = head.report.options;
        let mut before = Duration::ZERO;
        for line in lines {
            match line {
                Line::Head(_) => bail!("--resume: {} has two heads; {anew}", path.display()),
                Line::Trial(ended) => {
                    let Ended { at_s, trial } = *ended;
                    before = Duration::try_from_secs_f64(at_s).unwrap_or(before);
                    report.trials.push(trial);
                }
                Line::Resumed(date) => report.resumed.push(date),
            }
        }
        ensure!(
            plan.begins_with(u64::from(report.options.seed), &report.trials),
            "--resume: the trials in {} are not in the order of this plan; {anew}",
            path.display()
        );
        file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0)))?;
        let mut journal = Self { file, path: path.to_owned(), before, start: Instant::now() };
        journal.add(&Line::Resumed(now.clone()))?;
        report.resumed.push(now);
        Ok(journal)
    }

    /// How long the run has taken, the time before an interruption included.
    pub fn elapsed(&self) -> Duration {
        self.before + self.start.elapsed()
    }

    /// A trial has ended.
    pub fn trial(&mut self, trial: &Trial) -> Result<()> {
        let at_s = self.elapsed().as_secs_f64();
        self.add(&Line::Trial(Box::new(Ended { at_s, trial: trial.clone() })))
    }

    /// Sees to it that a power failure takes nothing away.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// The run is complete and its record written.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// In one call: another program sees all of a line, or what the kernel got of it.
    fn add(&mut self, line: &Line) -> Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A journal that no other run is writing.
fn open(path: &Path, create: bool) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    // A file system without locks has no say.
    let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    ensure!(!taken, "another run is writing {}", path.display());
    Ok(file)
}

/// The head, the other lines, and the length of all of them in bytes.
fn parse(text: &[u8]) -> Result<(Head, Vec<Line>, u64)> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].split_inclusive(|&byte| byte == b'\n').map(serde_json::from_slice);
    let Some(Ok(Line::Head(head))) = lines.next() else { bail!("its first line is not a head") };
    Ok((*head, lines.collect::<Result<_, _>>()?, whole as u64))
}

impl Head {
    fn new(report: &Report) -> Result<Self> {
        // The file may have been replaced by a build, but the program that runs is the old one.
        let program = std::fs::read("/proc/self/exe").context("cannot read this program")?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&program);
        let arguments = std::env::args().skip(1).filter(|argument| argument != "--resume");
        Ok(Self {
            arguments: arguments.collect(),
            program: format!("{:016x}", hasher.finish()),
            report: Report { trials: Vec::new(), ..report.clone() },
        })
    }

    /// What differs from an interrupted run, in words.
    fn differences(&self, old: &Self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        differ("", &old.identity()?, &self.identity()?, &mut found);
        Ok(found)
    }

    /// What must be the same.
    fn identity(&self) -> Result<Value> {
        let Self { program, report, .. } = self;
        let mut machine = serde_json::to_value(&report.machine)?;
        let mut options = serde_json::to_value(&report.options)?;
        // Two runs differ in these in any case; the second one takes over what it needs.
        for (part, names) in
            [(&mut machine, ["load_average", "date"]), (&mut options, ["iterations_per_us", "seed"])]
        {
            for name in names {
                part.as_object_mut().and_then(|fields| fields.remove(name));
            }
        }
        let locks: Vec<&str> = report.locks.iter().map(|lock| lock.name.as_str()).collect();
        Ok(serde_json::json!({
            "version": report.version,
            "program": program,
            "mode": report.mode,
            "machine": machine,
            "options": options,
            "locks": locks,
        }))
    }
}

/// The fields in which two values differ.
fn differ(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let of =
                    |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                differ(&path, &of(old), &of(new), found);
            }
        }
        _ if old != new => found.push(format!("{path} was {old} and is {new}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
