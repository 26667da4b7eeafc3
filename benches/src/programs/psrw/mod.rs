//! `psrw`: the runs of the seed of 2008 with today's reader-writer locks, and two properties of the
//! sifting one.
//!
//! One round is every lock in every run that it can take part in, once, in random order
//! ([`harness`]). The tables have the seed's figures: how long it took to lock and to unlock, by
//! class, in cycles and in nanoseconds. Where no thread contends that is less than a clock can
//! tell, and the figure is of [batches](crate::workloads::readers::batch).
//!
//! *Invariance*: what a reader at the top waits, while readers at the bottom hold for longer and
//! longer and a writer comes now and then. *Queue*: the same beside more and more writers. Both are
//! tables, and plots on a page.

mod page;
mod row;
mod tables;

pub(super) use page::plots;
pub use row::{Role, Row, Times};

use crate::programs::harness::plan::Effort;
use crate::programs::harness::{self, Cli, Program};
use crate::programs::shares;
use crate::report::Mode;
use crate::subjects::locks;
use crate::subjects::rwlocks::{Entry, Traits};
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::readers::{self, Handlers, Rank, Run};

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

/// A lock in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    lock: &'static Entry,
    run: Run,
}

impl Subject {
    /// Whether it is part of the table. A lock that is read in handlers is made for that, and its
    /// runs are those with handlers and the uncontended ones; where signals are blocked really, the
    /// former.
    fn belongs(&self) -> bool {
        let Entry { name, family, .. } = *self.lock;
        let Traits { urgent, nested, handler, timed_mask } = self.lock.kind;
        match self.run {
            _ if self.run.has_handlers() && !handler => false,
            Run::Reader(Rank::Nested) => nested,
            Run::Invariance { probe: readers::Probe::Handler, .. }
            | Run::Queue { probe: readers::Probe::Handler, .. } => {
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
    for probe in [readers::Probe::Urgent, readers::Probe::Handler] {
        runs.extend(HOLDS_US.map(|hold_us| Run::Invariance { hold_us, probe }));
    }
    for probe in [readers::Probe::Urgent, readers::Probe::Handler] {
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

impl harness::Subject for Subject {
    type Row = Row;

    /// As `--only` knows it: `invariance/urgent/3000us/std-rw`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.lock.name)
    }

    fn is_about(&self, lock: &locks::Entry) -> bool {
        lock.name == self.lock.name
    }

    fn row(&self, trials: &[Trial]) -> Option<Row> {
        Row::new(self.lock, self.run, trials)
    }
}

/// The program.
#[derive(Debug)]
pub enum Psrw {}

impl Program for Psrw {
    const NAME: &'static str = "psrw";
    const SCHEMA: &'static str = "ulocks-psrw/1";
    type Cli = Cli;
    type Subject = Subject;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (100, 1000), Some(200)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (1, 3), (100, 300), None),
            Mode::Smoke => Effort::new(5, (1, 1), (5, 5), None),
        }
    }

    fn subjects(cli: &Cli, mode: Mode, _: u32) -> Vec<Subject> {
        let every = mode == Mode::Full || cli.as_ref().only.is_some();
        let of = |run| Entry::all().iter().map(move |lock| Subject { lock, run });
        let all = runs().into_iter().flat_map(of).filter(Subject::belongs);
        all.filter(|subject| every || is_quick(subject)).collect()
    }

    fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
        let probe = |subject: &Subject| Probe {
            cell: Cell::Rw(subject.run),
            locks: vec![subject.lock.name.to_owned()],
        };
        (subjects.iter().map(probe).collect(), Vec::new())
    }

    fn tables(record: &Record) -> String {
        tables::all(record)
    }
}

#[cfg(test)]
mod tests;
