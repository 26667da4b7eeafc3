//! One page of evidence: what every program has left in a folder of records, and for each figure
//! the command that makes it.
//!
//! A program is one entry of `SOURCES`. Its section is what the program itself prints, computed
//! again from its record, so nothing on the page comes from anywhere else.

mod page;
#[cfg(test)]
mod tests;

use super::condvar::Condvar;
use super::convoy::Convoy;
use super::harness::{Program, RecordOf, Subject};
use super::promises::Promises;
use super::psrw::{self, Psrw};
use super::semaphores::sembench::Sembench;
use super::semaphores::semscale::Semscale;
use super::shared::Shared;
use super::{test_mutex, tofutex};
use crate::report::{self, Charts, Mode, Report};
use crate::run::machine::Machine;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program whose records the page shows.
struct Source {
    name: &'static str,
    schema: &'static str,
    about: &'static str,
    command: &'static str,
    read: fn(Value) -> Result<Shown>,
}

/// What the page says of a record.
struct Shown {
    /// The processor and how many.
    cpus: String,
    /// All that is known of the machine, and of the moment.
    machine: String,
    date: String,
    /// How it ran.
    run: String,
    text: String,
    charts: Option<Charts>,
}

/// Every program, in the order of the page.
#[rustfmt::skip]
const SOURCES: &[Source] = &[
    Source { name: "scaling", schema: report::SCHEMA, about: "all locks over thread counts", command: "cargo bench --bench scaling", read: scaling },
    of::<Promises>("each lock of the family against what is promised of it", "cargo bench --bench promises"),
    of::<Convoy>("the table of 2002, measured again", "cargo bench --bench convoy"),
    Source { read: psrw, ..of::<Psrw>("reader-writer locks", "cargo bench --bench psrw") },
    of::<Sembench>("semaphore arrays: the program of 2010", "cargo bench --bench sembench"),
    of::<Semscale>("semaphore arrays over thread counts", "cargo bench --bench semscale"),
    of::<Condvar>("condition variables", "cargo bench --bench condvar"),
    of::<Shared>("locks between processes, and the death of a holder", "cargo bench --bench shared"),
    Source { name: "test-mutex", schema: test_mutex::SCHEMA, about: "the program of 2005", command: "cargo run --release --bin test-mutex", read: test_mutex },
    Source { name: "tofutex", schema: tofutex::SCHEMA, about: "the program of 2016", command: "cargo run --release --bin tofutex", read: tofutex },
    Source { name: "predicted", schema: "ulocks-predicted/1", about: "what the locks would cost on many CPUs, in virtual time; nothing of it is measured", command: "cargo xtask vm --cost --cpus 1..64", read: predicted },
];

const fn of<P: Program>(about: &'static str, command: &'static str) -> Source
where
    <P::Subject as Subject>::Row: DeserializeOwned,
{
    Source { name: P::NAME, schema: P::SCHEMA, about, command, read: program::<P> }
}

impl Shown {
    fn of(machine: &Machine, mode: Mode, text: String) -> Self {
        Self {
            cpus: format!("{}, {} CPUs", machine.cpu_model, machine.cpus_online),
            machine: machine.to_string(),
            date: machine.date.clone(),
            run: match mode {
                Mode::Full => "full",
                Mode::Quick => "a quick look",
                Mode::Smoke => "a smoke run, which measures nothing",
            }
            .into(),
            text,
            charts: None,
        }
    }
}

fn program<P: Program>(json: Value) -> Result<Shown>
where
    <P::Subject as Subject>::Row: DeserializeOwned,
{
    let record: RecordOf<P> = serde_json::from_value(json)?;
    Ok(Shown::of(&record.machine, record.mode, P::tables(&record)))
}

fn psrw(json: Value) -> Result<Shown> {
    let record: RecordOf<Psrw> = serde_json::from_value(json)?;
    let shown = Shown::of(&record.machine, record.mode, Psrw::tables(&record));
    Ok(Shown { charts: psrw::plots(&record), ..shown })
}

fn scaling(json: Value) -> Result<Shown> {
    let mut record = Report::from_value(json)?;
    record.summary = report::summarise(&record);
    let text = format!("{}\n{}", report::answer(&record), report::tables(&record));
    let drawings = record.workloads().into_iter().flat_map(|workload| report::charts(&record, workload));
    let charts = Some((report::lines_in(&record), drawings.collect()));
    Ok(Shown { charts, ..Shown::of(&record.machine, record.mode, text) })
}

fn test_mutex(json: Value) -> Result<Shown> {
    let record: test_mutex::Record = serde_json::from_value(json)?;
    let rounds = record.rows.first().map_or(0, |row| row.rounds.len());
    let run = format!("{} tasks, {rounds} rounds", record.workers);
    let shown = Shown::of(&record.machine, Mode::Full, test_mutex::tables(&record));
    Ok(Shown { run, ..shown })
}

fn tofutex(json: Value) -> Result<Shown> {
    let record: tofutex::Record = serde_json::from_value(json)?;
    let rounds = record.rows.first().map_or(0, |row| row.rounds.len());
    let run = format!("{} threads, {rounds} rounds", record.workers);
    let shown = Shown::of(&record.machine, Mode::Full, tofutex::tables(&record));
    Ok(Shown { run, ..shown })
}

/// The record of `ulocks-cost`, whose machine is a model.
fn predicted(json: Value) -> Result<Shown> {
    #[derive(Deserialize)]
    struct Record {
        machine: String,
        load: String,
        tables: String,
    }
    let record: Record = serde_json::from_value(json)?;
    Ok(Shown {
        cpus: "a model".into(),
        machine: record.machine,
        date: String::new(),
        run: "predicted".into(),
        text: format!("{}\n\n{}", record.load, record.tables),
        charts: None,
    })
}

/// A file of a folder, and what became of it.
struct Found {
    file: String,
    source: &'static Source,
    shown: Result<Shown>,
}

/// The records in the folders and files. Files that are no record of a program are left out.
fn find(places: &[PathBuf]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for place in places {
        let mut paths = vec![place.clone()];
        if !place.is_file() {
            let names =
                std::fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))?;
            paths = names.map(|name| Ok(name?.path())).collect::<Result<Vec<_>>>()?;
            paths.sort();
        }
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let json =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            for (name, record) in report::kept::unpack(&json).unwrap_or_default() {
                let Some(schema) = record["schema"].as_str().map(str::to_owned) else { continue };
                // A record of another version has the same name, and is shown as not read.
                let program = |schema: &str| schema.split('/').next().map(str::to_owned);
                let Some(source) = SOURCES.iter().find(|s| program(s.schema) == program(&schema)) else {
                    continue;
                };
                let shown = if schema == source.schema {
                    (source.read)(record)
                } else {
                    Err(anyhow::anyhow!("the record is `{schema}`; this program reads `{}`", source.schema))
                };
                let file = format!("{file} {name}").trim_end().to_owned();
                found.push(Found { file, source, shown });
            }
        }
    }
    // The newest first: a folder's own order is that of names.
    found.sort_by(|a, b| b.date().cmp(a.date()));
    Ok(found)
}

impl Found {
    fn date(&self) -> &str {
        self.shown.as_ref().map_or("", |shown| &shown.date)
    }
}

/// Where programs leave their records.
pub fn folder() -> Result<PathBuf> {
    report::folder()
}

/// Writes the page of the records in `folders` to `output`, and its twin in Markdown beside it.
///
/// # Errors
///
/// A folder or a record cannot be read, or a file cannot be written. A record that is damaged or of
/// another version is no error: its section says so.
pub fn write(folders: &[PathBuf], output: &Path) -> Result<()> {
    let found = find(folders)?;
    save(output, &page::html(&found, true))?;
    save(&output.with_extension("md"), &page::markdown(&found))
}

/// Writes the page of the records in one file, without what was not run.
///
/// # Errors
///
/// As of [`write()`].
pub fn write_one(record: &Path, output: &Path) -> Result<()> {
    save(output, &page::html(&find(&[record.to_path_buf()])?, false))
}

fn save(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the page of this build's own records, and says where it is.
pub fn remind() {
    // The output of a trial is its answer.
    if std::env::args_os().any(|argument| argument == crate::run::child::TRIAL) {
        return;
    }
    let page = folder().and_then(|folder| {
        let page = folder.join("index.html");
        write(&[folder], &page)?;
        Ok(page)
    });
    match page {
        Ok(page) => eprintln!("all figures: {}", page.display()),
        Err(error) => eprintln!("no page of all figures: {error:#}"),
    }
}
