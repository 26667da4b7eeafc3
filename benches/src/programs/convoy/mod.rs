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
//! of the first round. A lock that does not exist yet is listed as not built.

mod row;
pub mod seed;
mod text;

pub use row::{Measured, Row};

use crate::programs::harness;
use crate::programs::harness::plan::{Effort, Plan};
use crate::programs::options::BenchOptions;
use crate::report::Mode;
use crate::run::{busy_work, machine};
use crate::subjects::locks;
use crate::workloads::Workload;
use crate::workloads::cell::{Cell, Probe};
use crate::workloads::trial::Workers;
use seed::Letter;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "convoy";

/// The version of the record.
pub const SCHEMA: &str = "ulocks-convoy/1";

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
const SEMAPHORE: &str = "semaphore";

const CHILDREN: [u32; 6] = [1, 2, 3, 4, 100, 1000];
/// As many as these need time.
const CROWD: u32 = 1000;
/// Hold and non-hold time.
const WORKLOADS_US: [(u64, u64); 3] = [(10, 0), (3, 7), (1, 9)];

/// The whole program.
pub fn main() -> ExitCode {
    harness::main(NAME, measure)
}

/// A lock in a cell: what will be a row.
#[derive(Clone, Copy, Debug)]
struct Subject {
    lock: Lock,
    workload: Workload,
    children: u32,
}

impl Subject {
    /// As `--only` knows it: `(1,9)x1000/calock`.
    fn name(&self) -> String {
        let Workload { hold_ns, non_hold_ns } = self.workload;
        format!("({},{})x{}/{}", hold_ns / 1000, non_hold_ns / 1000, self.children, self.lock.name)
    }

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

    fn is_built(&self) -> bool {
        locks::Entry::find(self.lock.name).is_ok()
    }
}

/// The rows that `options` ask for, in the order of the table.
fn selected(options: &BenchOptions, mode: Mode) -> Vec<Subject> {
    let (workloads, children): (&[_], &[u32]) = match mode {
        _ if options.only.is_some() => (&WORKLOADS_US, &CHILDREN),
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
    if let Some(part) = &options.only {
        subjects.retain(|subject| subject.name().contains(part.as_str()));
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
        usual_window_ms: (mode == Mode::Full).then_some(100),
    };
    match mode {
        Mode::Full => of(165, 3, 9, (60, 300)),
        Mode::Quick => of(15, 3, 5, (30, 100)),
        Mode::Smoke => of(2, 1, 1, (5, 5)),
    }
}

/// What is run for the rows: each lock in its cells and beside it those that ratios are taken to;
/// and once the twins that count.
fn plan(options: &BenchOptions, mode: Mode, subjects: &[Subject], iterations_per_us: f64) -> Plan {
    let mut probes: Vec<Probe> = Vec::new();
    let mut once: Vec<Probe> = Vec::new();
    let add = |to: &mut Vec<Probe>, cell: Cell, lock: &str| {
        let probe = Probe { cell, locks: vec![lock.to_owned()] };
        if !to.contains(&probe) {
            to.push(probe);
        }
    };
    for subject in subjects {
        let Ok(entry) = locks::Entry::find(subject.lock.name) else { continue };
        for name in [entry.name, SYSV, SEMAPHORE] {
            add(&mut probes, subject.cell(), name);
        }
        if let Some(twin) = entry.metered_twin() {
            add(&mut once, subject.counting_cell(), twin.name);
        }
    }
    let window_ms = options.seconds.map(|s| (s.as_millis() as u64).max(1));
    Plan::new(effort(mode), probes, once, window_ms, options.rounds, iterations_per_us)
}

/// Measures, and writes table and record; returns the signal that came in between.
fn measure(options: &BenchOptions) -> anyhow::Result<Option<i32>> {
    let (mode, machine) = (options.mode(), machine::describe());
    let subjects = selected(options, mode);
    if subjects.is_empty() {
        eprintln!("{NAME}: no row of the table is called so");
        return Ok(None);
    }
    let plan = plan(options, mode, &subjects, busy_work::calibrate());
    let (mut record, signal) = Record::measure(NAME, SCHEMA, mode, machine, &plan)?;
    record.rows = subjects.iter().map(|subject| Row::new(subject, &record.trials)).collect();
    // A reader that closes the pipe has seen enough; the file is written all the same.
    let _ = std::io::stdout().lock().write_all(text::tables(&record).as_bytes());
    record.write(NAME)?;
    Ok(signal)
}

#[cfg(test)]
mod tests;
