//! `sembench` and `semscale`: semaphore arrays in the seed's program of 2010, and in other company.
//!
//! One round is every subject in every run that it can take part in, once, in random order
//! ([`harness`]). What is made of them is a [`Row`] each: a rate, its ratios to others of the same
//! round, and what it cost.

mod row;
pub mod sembench;
pub mod semscale;

pub use row::Row;

use crate::programs::harness;
use crate::programs::harness::plan::{Effort, Plan};
use crate::programs::options::BenchOptions;
use crate::report::Mode;
use crate::run::{busy_work, machine};
use crate::subjects::semaphores::Entry;
use crate::workloads::cell::{Cell, Probe};
use crate::workloads::semaphores::Run;
use std::io::Write;
use std::time::Duration;

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// Some semaphores in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
struct Subject {
    entry: &'static Entry,
    run: Run,
}

impl Subject {
    /// As `--only` knows it: `256/200/fifo/sysv`, `own/4+poster/sem_t`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.entry.name)
    }

    /// All that can take part in these runs.
    fn of(runs: &[Run]) -> Vec<Self> {
        let in_run = |&run: &Run| {
            let entries = Entry::all().iter().filter(move |entry| run.admits(entry));
            entries.map(move |entry| Self { entry, run })
        };
        runs.iter().flat_map(in_run).collect()
    }
}

/// Those of them that `options` ask for.
fn narrow(subjects: &mut Vec<Subject>, options: &BenchOptions) {
    if let Some(part) = &options.only {
        subjects.retain(|subject| subject.name().contains(part.as_str()));
    }
    if let Some(named) = &options.locks {
        subjects.retain(|subject| named.0.iter().any(|lock| lock.name == subject.entry.name));
    }
}

/// How much is spent on a run: about so long, at least and at most so many rounds and milliseconds
/// a window.
fn effort(seconds: u64, rounds: (u32, u32), windows_ms: (u64, u64), usual_window_ms: Option<u64>) -> Effort {
    Effort {
        budget: Duration::from_secs(seconds),
        rounds: rounds.0,
        max_rounds: rounds.1,
        min_window_ms: windows_ms.0,
        max_window_ms: windows_ms.1,
        usual_window_ms,
    }
}

/// Each subject in its run, and beside it those that its ratios are taken to.
fn probes(subjects: &[Subject]) -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut add = |run, name: &str| {
        let probe = Probe { cell: Cell::Sem(run), locks: vec![name.to_owned()] };
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    };
    for Subject { entry, run } in subjects {
        add(*run, entry.name);
        row::peers(*run).iter().for_each(|peer| add(*run, peer));
        if let Some(fifo) = row::fifo(*run) {
            add(fifo, entry.name);
        }
    }
    probes
}

/// A bench of this kind.
struct Bench {
    /// For cargo's filters and its files.
    name: &'static str,
    /// The version of the record.
    schema: &'static str,
    tables: fn(&Record) -> String,
}

impl Bench {
    /// Measures, and writes tables and record; returns the signal that came in between.
    fn measure(
        &self,
        subjects: &[Subject],
        effort: Effort,
        mode: Mode,
        window: Option<Duration>,
        rounds: Option<u32>,
    ) -> anyhow::Result<Option<i32>> {
        if subjects.is_empty() {
            eprintln!("{}: no row of the tables is called so", self.name);
            return Ok(None);
        }
        let window_ms = window.map(|window| (window.as_millis() as u64).max(1));
        let plan = Plan::new(effort, probes(subjects), Vec::new(), window_ms, rounds, busy_work::calibrate());
        let (mut record, signal) = Record::measure(self.name, self.schema, mode, machine::describe(), &plan)?;
        record.rows = subjects.iter().filter_map(|subject| Row::new(subject, &record.trials)).collect();
        // A reader that closes the pipe has seen enough; the file is written all the same.
        let _ = std::io::stdout().lock().write_all((self.tables)(&record).as_bytes());
        record.write(self.name)?;
        Ok(signal)
    }
}

#[cfg(test)]
mod tests;
