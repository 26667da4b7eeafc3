//! `psrw`: the runs of the seed of 2008 with today's reader-writer locks, and two properties of the
//! sifting one.
//!
//! One round is every lock in every run that it can take part in, once, in random order
//! ([`harness`]). The tables have the seed's figures: how long it took to lock and to unlock, by
//! class, in cycles and in nanoseconds. Where nobody contends that is less than a clock can tell,
//! and the figure is of [batches](crate::workloads::readers::batch).
//!
//! *Invariance*: what a reader at the top waits, while readers at the bottom hold for longer and
//! longer and a writer comes now and then. *Queue*: the same beside more and more writers. Both are
//! tables, and plots on a page.

mod page;
mod row;
mod tables;

pub use row::{Role, Row, Times};

use crate::programs::harness;
use crate::programs::harness::plan::{Effort, Plan};
use crate::programs::options::BenchOptions;
use crate::report::{self, Mode};
use crate::run::{busy_work, machine};
use crate::subjects::rwlocks::{Entry, Traits};
use crate::workloads::cell;
use crate::workloads::readers::{Handlers, Probe, Rank, Run};
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "psrw";

/// The version of the record.
pub const SCHEMA: &str = "ulocks-psrw/1";

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// How long readers of class `Bulk` hold, in microseconds.
const HOLDS_US: [u32; 8] = [1, 3, 10, 30, 100, 300, 1000, 3000];
/// How many writers queue.
const WRITERS: [u32; 4] = [1, 2, 4, 8];
/// How often signals strike.
const EVERY_US: [u32; 2] = [100_000, 100];

/// Peers whose readers at the top are looked at: the others are of one kind with one of them.
const LOOKED_AT: [&str; 4] = ["std-rw", "parking_lot-rw", "pthread-rw", "pthread-rw-writer"];
/// And of those that block signals.
const LOOKED_AT_MASKED: [&str; 1] = ["parking_lot-rw-masked"];

/// The whole program.
pub fn main() -> ExitCode {
    harness::main(NAME, measure)
}

/// A lock in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
struct Subject {
    lock: &'static Entry,
    run: Run,
}

impl Subject {
    /// As `--only` knows it: `invariance/urgent/3000us/std-rw`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.lock.name)
    }

    /// Whether it is part of the table. A lock that is read in handlers is made for that, and its
    /// runs are those with handlers and the uncontended ones; where signals are blocked really, the
    /// former.
    fn belongs(&self) -> bool {
        let Entry { name, family, .. } = *self.lock;
        let Traits { urgent, nested, handler, timed_mask } = self.lock.kind;
        match self.run {
            _ if self.run.has_handlers() && !handler => false,
            Run::Reader(Rank::Nested) => nested,
            Run::Invariance { probe: Probe::Handler, .. } | Run::Queue { probe: Probe::Handler, .. } => {
                family && !timed_mask || LOOKED_AT_MASKED.contains(&name)
            }
            Run::Invariance { .. } | Run::Queue { .. } => {
                family && urgent && !handler || LOOKED_AT.contains(&name)
            }
            Run::Contention(Some(_)) | Run::Behind => timed_mask || !family,
            Run::Reader(Rank::Urgent) if family => urgent && !timed_mask,
            Run::Writer | Run::TryWriter | Run::Reader(_) => !timed_mask,
            Run::Readers | Run::Contention(None) => !handler,
        }
    }
}

/// All runs, in the order of the tables.
fn runs() -> Vec<Run> {
    let mut runs = vec![Run::Writer, Run::TryWriter];
    runs.extend([Rank::Bulk, Rank::Urgent, Rank::Nested].map(Run::Reader));
    runs.extend([Run::Readers, Run::Contention(None)]);
    for tries in [false, true] {
        runs.extend(EVERY_US.map(|every_us| Run::Contention(Some(Handlers { every_us, tries }))));
    }
    runs.push(Run::Behind);
    for probe in [Probe::Urgent, Probe::Handler] {
        runs.extend(HOLDS_US.map(|hold_us| Run::Invariance { hold_us, probe }));
    }
    for probe in [Probe::Urgent, Probe::Handler] {
        runs.extend(WRITERS.map(|writers| Run::Queue { writers, probe }));
    }
    runs
}

/// Whether a quick look shows it.
fn is_quick(subject: &Subject) -> bool {
    match subject.run {
        Run::Invariance { hold_us, .. } => [1, 100, 3000].contains(&hold_us),
        Run::Queue { writers, .. } => [1, 8].contains(&writers),
        Run::Contention(Some(Handlers { every_us, tries })) => every_us == 100 && !tries,
        _ => true,
    }
}

/// The rows that `options` ask for, in the order of the tables.
fn selected(options: &BenchOptions, mode: Mode) -> Vec<Subject> {
    let of = |run| Entry::all().iter().map(move |lock| Subject { lock, run });
    let mut subjects: Vec<Subject> = runs().into_iter().flat_map(of).filter(Subject::belongs).collect();
    if let Some(part) = &options.only {
        subjects.retain(|subject| subject.name().contains(part.as_str()));
    } else if mode != Mode::Full {
        subjects.retain(is_quick);
    }
    if let Some(named) = &options.locks {
        subjects.retain(|subject| named.0.iter().any(|entry| entry.name == subject.lock.name));
    }
    subjects
}

/// The share of this harness in `cargo bench`, in `cargo bench -- --quick`, or in `cargo test`.
fn effort(mode: Mode) -> Effort {
    let of = |seconds, rounds, max_rounds, windows_ms: (u64, u64)| Effort {
        budget: Duration::from_secs(seconds),
        rounds,
        max_rounds,
        min_window_ms: windows_ms.0,
        max_window_ms: windows_ms.1,
        usual_window_ms: (mode == Mode::Full).then_some(200),
    };
    match mode {
        Mode::Full => of(115, 3, 9, (100, 1000)),
        Mode::Quick => of(20, 1, 3, (100, 300)),
        Mode::Smoke => of(5, 1, 1, (5, 5)),
    }
}

fn plan(options: &BenchOptions, mode: Mode, subjects: &[Subject], iterations_per_us: f64) -> Plan {
    let probe = |subject: &Subject| cell::Probe {
        cell: cell::Cell::Rw(subject.run),
        locks: vec![subject.lock.name.to_owned()],
    };
    let window_ms = options.seconds.map(|s| (s.as_millis() as u64).max(1));
    let probes = subjects.iter().map(probe).collect();
    Plan::new(effort(mode), probes, Vec::new(), window_ms, options.rounds, iterations_per_us)
}

/// Measures, and writes tables, page and record; returns the signal that came in between.
fn measure(options: &BenchOptions) -> anyhow::Result<Option<i32>> {
    let (mode, machine) = (options.mode(), machine::describe());
    let subjects = selected(options, mode);
    if subjects.is_empty() {
        eprintln!("{NAME}: no row of the tables is called so");
        return Ok(None);
    }
    let plan = plan(options, mode, &subjects, busy_work::calibrate());
    let (mut record, signal) = Record::measure(NAME, SCHEMA, mode, machine, &plan)?;
    record.rows =
        subjects.iter().filter_map(|subject| Row::new(subject.lock, subject.run, &record.trials)).collect();
    // A reader that closes the pipe has seen enough; the files are written all the same.
    let _ = std::io::stdout().lock().write_all(tables::all(&record).as_bytes());
    if let Some(page) = page::render(&record) {
        let path = report::folder()?.join(format!("{NAME}.html"));
        std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{NAME}: {}", path.display());
    }
    record.write(NAME)?;
    Ok(signal)
}

#[cfg(test)]
mod tests;
