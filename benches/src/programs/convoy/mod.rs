//! `convoy`: the table of Franke's mail of 2002, measured here, beside his own figures.
//!
//! Children are processes and the locks lie in memory that they share, as in his program. A cell is
//! a number of children and a workload; in each cell run his calocks of today, his usema of today,
//! SysV's semaphore, and no lock. What is compared is not a throughput of 2002 with one of today
//! but the ratio of two locks then with the ratio of the same two locks now: his figures lie in
//! `franke-2002.txt` ([`seed`]).
//!
//! How trials are run and what a run leaves behind is written in [`harness`]. Contention and
//! entries into the kernel are counted inside the lock by a twin that counts, in one further trial
//! of the first round.

mod row;
pub mod seed;
mod text;

pub use row::{Measured, Row};

use crate::programs::harness::plan::Effort;
use crate::programs::harness::{self, Cli, Program};
use crate::programs::shares;
use crate::report::Mode;
use crate::subjects::locks::Entry;
use crate::workloads::Workload;
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::trial::Workers;
use seed::Letter;

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// A lock of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name in the registry.
    pub name: &'static str,
    /// What it is compared with.
    pub then: Letter,
}

/// What each is in his table, and today.
const LOCKS: [Lock; 7] = [
    Lock { name: "calock-0", then: Letter('c', 0) },
    Lock { name: "calock", then: Letter('C', 0) },
    Lock { name: "calock-3us", then: Letter('C', 3) },
    Lock { name: "fair", then: seed::USEMA },
    Lock { name: SEMAPHORE, then: seed::USEMA },
    Lock { name: SYSV, then: seed::SYSV },
    Lock { name: "none", then: Letter('e', 0) },
];

/// What ratios are taken to: the kernel's semaphore, and usema's descendant.
const SYSV: &str = "sysv";
/// The other.
pub(super) const SEMAPHORE: &str = "semaphore";

const CHILDREN: [u32; 6] = [1, 2, 3, 4, 100, 1000];
/// As many as these need time.
const CROWD: u32 = 1000;
/// Hold and non-hold time.
const WORKLOADS_US: [(u64, u64); 3] = [(10, 0), (3, 7), (1, 9)];

/// A lock in a cell: what will be a row.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    lock: Lock,
    workload: Workload,
    children: u32,
}

impl Subject {
    fn cell(&self) -> Cell {
        let workers = Workers::Processes(self.children);
        Cell::Loop { workload: self.workload, workers, second: false }
    }

    /// The cell in which the twin counts. A crowd gets a second: contention counts when it begins
    /// and an acquisition when the waiting is over, and in a short window the one may be of far
    /// more children than the other.
    fn counting_cell(&self) -> Cell {
        let workers = Workers::Processes(self.children);
        Cell::Loop { workload: self.workload, workers, second: self.children >= CROWD }
    }
}

impl harness::Subject for Subject {
    type Row = Row;

    /// As `--only` knows it: `(1,9)x1000/calock`.
    fn name(&self) -> String {
        let Workload { hold_ns, non_hold_ns } = self.workload;
        format!("({},{})x{}/{}", hold_ns / 1000, non_hold_ns / 1000, self.children, self.lock.name)
    }

    fn is_about(&self, lock: &Entry) -> bool {
        lock.name == self.lock.name
    }

    fn row(&self, trials: &[Trial]) -> Option<Row> {
        Some(Row::new(self, trials))
    }
}

/// The program.
#[derive(Debug)]
pub enum Convoy {}

impl Program for Convoy {
    const NAME: &'static str = "convoy";
    const SCHEMA: &'static str = "ulocks-convoy/1";
    type Cli = Cli;
    type Subject = Subject;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (50, 300), Some(100)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (30, 100), None),
            Mode::Smoke => Effort::new(2, (1, 1), (5, 5), None),
        }
    }

    fn subjects(cli: &Cli, mode: Mode, _: u32) -> Vec<Subject> {
        let (workloads, children): (&[_], &[u32]) = match mode {
            _ if cli.as_ref().only.is_some() => (&WORKLOADS_US, &CHILDREN),
            Mode::Full => (&WORKLOADS_US, &CHILDREN),
            Mode::Quick => (&WORKLOADS_US[1..], &[2, 4, 100]),
            Mode::Smoke => (&WORKLOADS_US[2..], &[2, 4]),
        };
        let mut subjects = Vec::new();
        for &(hold_us, non_hold_us) in workloads {
            let workload = Workload { hold_ns: hold_us * 1000, non_hold_ns: non_hold_us * 1000 };
            for &children in children {
                subjects.extend(LOCKS.map(|lock| Subject { lock, workload, children }));
            }
        }
        subjects
    }

    /// Each lock in its cells and beside it those that ratios are taken to; and once the twins that
    /// count.
    fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
        let (mut probes, mut once) = (Vec::new(), Vec::new());
        for subject in subjects {
            for name in [subject.lock.name, SYSV, SEMAPHORE] {
                Probe::add(&mut probes, subject.cell(), name);
            }
            if let Some(twin) = Entry::find(subject.lock.name).ok().and_then(Entry::metered_twin) {
                Probe::add(&mut once, subject.counting_cell(), twin.name);
            }
        }
        (probes, once)
    }

    fn tables(record: &Record) -> String {
        text::tables(record)
    }
}

#[cfg(test)]
mod tests;
