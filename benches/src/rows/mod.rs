//! The rows of the program: which scenarios, which subjects, and what is printed of them.
//!
//! A row is data: jobs for the engine, columns for its tables, and its sentences, the part of the
//! last screen that is about it.

use crate::engine::cell::{Cell, Job, Kind};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::statistics::geometric_mean;
use crate::statistics::rounds::Ratio;
use crate::workloads::turns::Turns;
use crate::workloads::{Scenario, Times, Workers};
use std::cmp::Ordering;

pub mod claims;
mod condvar;
mod convoy;
mod many;
mod promises;
mod psrw;
mod readers;
mod scaling;
pub mod sembench;
mod semscale;
mod shared;
mod tasks;

/// A row of the program.
#[derive(Clone, Copy)]
pub struct Row {
    /// What it is called on the command line; its record has the same name.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
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
    /// What its record says, in sentences of at most 100 characters: which lock is ahead and where.
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

/// A figure itself.
const fn of(figure: &'static str) -> Column {
    Column { figure, by: By::Nothing }
}

/// A figure by that of the best peer.
const fn by_peer(figure: &'static str) -> Column {
    Column { figure, by: By::BestPeer }
}

/// A figure by that of this subject.
const fn by(figure: &'static str, subject: &'static str) -> Column {
    Column { figure, by: By::Subject(subject) }
}

/// What the command line and the machine ask of a row.
#[derive(Clone, Debug, Default, PartialEq)]
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
    tasks::ROW,
    shared::ROW,
    psrw::ROW,
    readers::ROW,
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
    doubled(wish.cpus, &[1, 2, 8])
}

/// Thread counts that double up to twice the CPUs, and these multiples of the CPUs.
fn doubled(cpus: u32, multiples: &[u32]) -> Vec<u32> {
    let cpus = cpus.max(1);
    let doubled = std::iter::successors(Some(1_u32), |n| n.checked_mul(2));
    let doubled = doubled.take_while(|&n| n < 2 * cpus);
    in_order(doubled.chain(multiples.iter().map(|n| n * cpus)).collect())
}

/// Each once, the least first.
fn in_order(mut counts: Vec<u32>) -> Vec<u32> {
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The loop of 2002 with these workers.
pub(crate) fn turns(times: Times, workers: Workers) -> Turns {
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
fn cell(turns: Turns) -> Cell {
    let (n, kinds) = match turns.workers {
        Workers::Threads(n) => (n, ["thread", "threads"]),
        Workers::Processes(n) => (n, ["process", "processes"]),
    };
    let (section, label) = (units::times(turns.times), format!("{n} {}", kinds[usize::from(n != 1)]));
    Cell { section, label, x: Some(f64::from(n)), scenario: Scenario::Turns(turns) }
}

/// A job for each of these times and numbers of workers.
fn grid(all: &[Times], counts: &[u32], of: impl Fn(Times, u32) -> (Turns, Vec<String>)) -> Vec<Job> {
    let places = all.iter().flat_map(|&times| counts.iter().map(move |&n| (times, n)));
    let loops = places.map(|(times, n)| of(times, n));
    loops.map(|(turns, subjects)| Job { cell: cell(turns), subjects }).collect()
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

/// How a subject stands to the best peer of a cell, and which that is.
fn by_best<'a>(record: &'a Record, at: usize, subject: &str, figure: &str) -> Option<(Ratio, &'a str)> {
    let peer = record.best_peer(at, figure)?;
    Some((record.ratio((at, subject), (at, peer), figure)?, peer))
}

/// A cell, its best peer, and a rate by that of the peer.
type Standing<'a> = (usize, &'a str, Ratio);

/// Each lock of the family with its rate by the best peer of each cell, the worst cell first.
fn standings(record: &Record) -> Vec<(&str, Vec<Standing<'_>>)> {
    let family = record.subjects.iter().filter(|subject| subject.kind == Kind::Family);
    let of = |name| {
        let cell = |at| by_best(record, at, name, "rate").map(|(ratio, peer)| (at, peer, ratio));
        let mut cells: Vec<_> = (0..record.cells.len()).filter_map(cell).collect();
        cells.sort_by(|a, b| a.2.value.total_cmp(&b.2.value));
        (name, cells)
    };
    family.map(|subject| of(subject.name.as_str())).filter(|(_, cells)| !cells.is_empty()).collect()
}

/// Each lock of the family by the best peer of each cell: the geometric mean and the worst cell,
/// the best lock first.
fn scores(row: &str, record: &Record) -> Vec<String> {
    let score = |(name, all): (&str, Vec<Standing<'_>>)| {
        let mean = geometric_mean(&all.iter().map(|(_, _, ratio)| ratio.value).collect::<Vec<_>>());
        let (cell, worst) = (&record.cells[all[0].0], units::fixed(all[0].2.value));
        let of_all = format!("{name} has {} of the best peer of each cell", units::fixed(mean));
        (mean, format!("{row}: {of_all}, {worst} in the worst: {} x {}.", cell.section, cell.label))
    };
    let mut scores: Vec<_> = standings(record).into_iter().map(score).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    scores.into_iter().map(|(_, sentence)| sentence).collect()
}

/// Which side of 1 it is on, if there is a verdict.
fn standing(ratio: &Ratio) -> &'static str {
    match ratio.verdict() {
        Ordering::Greater => "ahead",
        Ordering::Less => "behind",
        Ordering::Equal => "no verdict",
    }
}

/// `1.41 [1.32 1.50] of sysv (ahead)`.
fn against(ratio: Ratio, other: &str) -> String {
    format!("{} of {other} ({})", units::ratio(Some(ratio)), standing(&ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::figures::Figure;
    use std::collections::HashSet;

    #[test]
    fn rows_of_all_sizes_have_cells_with_unique_names_and_figures() {
        let sizes = [(Mode::Full, 256), (Mode::Full, 2), (Mode::Quick, 2), (Mode::Smoke, 1)];
        for (row, (mode, cpus)) in ALL.iter().flat_map(|row| sizes.map(|size| (row, size))) {
            let jobs = (row.jobs)(&Wish { cpus, mode, ..Wish::default() });
            let what = format!("{} {mode:?} {cpus}", row.name);
            let scenarios: HashSet<_> = jobs.iter().map(|job| format!("{:?}", job.cell.scenario)).collect();
            assert_eq!(scenarios.len(), jobs.len(), "{what}");
            // Promises are told apart by their scenarios alone.
            let names = || jobs.iter().map(|job| (&job.cell.section, &job.cell.label));
            let is_unique = row.columns.is_empty() || names().collect::<HashSet<_>>().len() == jobs.len();
            assert!(is_unique, "{what}");
            let least = |job: &Job| {
                let is_alone = row.columns.is_empty() || row.name == "psrw";
                job.subjects.len() > usize::from(!is_alone)
            };
            assert!(jobs.iter().all(least), "{what}");
            let may_go = |name: &&str| jobs.iter().any(|job| job.subjects.iter().any(|own| own == name));
            assert!(mode != Mode::Full || row.drop_first.iter().all(may_go), "{what}");
        }
        for row in ALL {
            assert!(row.columns.iter().all(|column| Figure::find(column.figure).is_some()), "{}", row.name);
        }
        assert_eq!(
            [1, 24].map(|cpus| doubled(cpus, &[1, 2])),
            [vec![1, 2], vec![1, 2, 4, 8, 16, 24, 32, 48]]
        );
    }

    /// From the records in the repository, which old runs left.
    #[test]
    fn sentences_are_short_and_all_are_there() {
        for file in ["2026-11-24-epyc-2cpu-kvm", "2026-11-26-xeon-16cpu-kvm"] {
            let path = format!("{}/results/{file}.json", env!("CARGO_MANIFEST_DIR"));
            let records = crate::report::kept::read(path.as_ref()).unwrap();
            for (row, least) in [(psrw::ROW, 5), (sembench::ROW, 4), (semscale::ROW, 4)] {
                let said = (row.sentences)(records.iter().find(|record| record.row == row.name).unwrap());
                assert!(said.len() >= least, "{said:#?}");
                assert!(said.iter().all(|sentence| sentence.chars().count() <= 100), "{said:#?}");
            }
        }
    }
}
