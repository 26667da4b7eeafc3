//! The rows of the program: which scenarios, which subjects, and what is printed of them.
//!
//! A row is data: jobs for the engine, columns for its tables, and its sentences, the part of the
//! last screen that is about it.

use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::workloads::turns::Turns;
use crate::workloads::{Scenario, Times, Workers};

pub mod claims;
mod condvar;
mod convoy;
mod many;
mod promises;
mod psrw;
mod scaling;
pub mod sembench;
mod semscale;
mod shared;

/// A row of the program.
#[derive(Clone, Copy)]
pub struct Row {
    /// What it is called on the command line; its record has the same name.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// The mail of which it is the program, if it is one: `Mason 2010`.
    pub mail: Option<&'static str>,
    /// Its share of the time of a run on two CPUs, and of one with `--quick`, in seconds.
    pub share_s: (u64, u64),
    /// What is run.
    pub jobs: fn(&Wish) -> Vec<Job>,
    /// Subjects that the plan drops where the time is short, the first first. It drops no cell.
    pub drop_first: &'static [&'static str],
    /// The columns of its tables.
    pub columns: &'static [Column],
    /// What is promised and judged by its record; rows with claims have no other tables.
    pub claims: fn(&Record) -> Vec<claims::Claim>,
    /// What its record says, in sentences of at most 100 characters: who is ahead and where.
    pub sentences: fn(&Record) -> Vec<String>,
    /// What the reader of its tables must know, beside the meaning of the columns.
    pub notes: &'static str,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The figure.
    pub figure: &'static str,
    /// What it is divided by.
    pub by: By,
}

/// What a figure is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By nothing: the figure itself.
    Nothing,
    /// The best peer of the cell.
    BestPeer,
    /// This subject, in the same cell.
    Subject(&'static str),
}

/// What the command line and the machine ask of a row.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// CPUs that may be used.
    pub cpus: u32,
    /// How much the run shall support.
    pub mode: Mode,
    /// `--full`: everything, however long it takes.
    pub full: bool,
    /// `--threads`.
    pub threads: Option<Vec<u32>>,
    /// `--hold`, `--think`.
    pub times: Option<Times>,
    /// `--locks`, names in the registry of the row's subjects.
    pub subjects: Option<Vec<String>>,
}

/// Every row, in the order in which they run and are shown.
pub const ALL: &[Row] = &[
    scaling::ROW,
    many::ROW,
    convoy::ROW,
    sembench::ROW,
    semscale::ROW,
    condvar::ROW,
    shared::ROW,
    psrw::ROW,
    promises::ROW,
];

impl Row {
    /// The row called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|row| row.name == name)
    }
}

/// Of a row that promises nothing.
pub fn no_claims(_: &Record) -> Vec<claims::Claim> {
    Vec::new()
}

/// Thread counts when none are given: doubled up to twice the CPUs, then eight times the CPUs.
pub fn thread_counts(wish: &Wish) -> Vec<u32> {
    if let Some(threads) = &wish.threads {
        return threads.clone();
    }
    if wish.mode == Mode::Smoke {
        return vec![1, 2];
    }
    let doubled = std::iter::successors(Some(1_u32), |n| n.checked_mul(2));
    let mut threads: Vec<u32> = doubled.take_while(|&n| n < 2 * wish.cpus).collect();
    threads.extend([wish.cpus, 2 * wish.cpus, 8 * wish.cpus]);
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The loop of 2002 with `threads` threads.
fn turns(times: Times, workers: Workers) -> Turns {
    Turns {
        times,
        workers,
        read_share: 0,
        locks: 1,
        timed: false,
        least_ms: 0,
        counted: false,
        patience_ns: None,
    }
}

/// The cell of a loop, in the section that is named by its times.
fn cell(section: String, turns: Turns) -> Cell {
    let (n, kind) = match turns.workers {
        Workers::Threads(n) => (n, "thread"),
        Workers::Processes(n) => (n, "process"),
    };
    let plural = match (n, kind) {
        (1, kind) => kind.to_owned(),
        (_, "thread") => "threads".to_owned(),
        _ => "processes".to_owned(),
    };
    Cell { section, label: format!("{n} {plural}"), x: Some(f64::from(n)), scenario: Scenario::Turns(turns) }
}

/// The `subjects`, or those of them that the command line names.
fn chosen(wish: &Wish, subjects: &[&str]) -> Vec<String> {
    match &wish.subjects {
        Some(names) => names.clone(),
        None => subjects.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// Those of the subjects `all` that the command line names, and with them those of `always`; none
/// if it names none of them.
fn named(wish: &Wish, all: impl Iterator<Item = &'static str>, always: &[&str]) -> Option<Vec<String>> {
    let is_named = |name: &str| wish.subjects.as_ref().is_none_or(|names| names.iter().any(|n| n == name));
    let all: Vec<&str> = all.collect();
    let kept = all.iter().filter(|name| is_named(name) || always.contains(name));
    all.iter().any(|name| is_named(name)).then(|| kept.map(|&name| name.into()).collect())
}
