//! `ulockflex`: the program of Franke's mail of 2002. Children run `outside; lock; inside; unlock`
//! in a loop; reported are their loops a second, how evenly they share them, and how often the lock
//! was contended.
//!
//! Without arguments it runs every row of his mail. His columns stand first, then those of 2002.

use super::MailTable;
use super::franke::{self, Row};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::Record;
use crate::report::units;
use crate::workloads::turns::Turns;
use crate::workloads::{Scenario, Workers};

/// The name of its records.
pub const ROW: &str = "ulockflex";

/// His letters, and what runs under them today: the lock, and how long it spins.
const LETTERS: [(char, &str, Option<u32>); 7] = [
    ('e', "none", None),
    ('k', "sysv", None),
    ('f', "semaphore", Some(0)),
    ('F', "semaphore", None),
    ('c', "calock", Some(0)),
    ('C', "calock", None),
    ('s', "psrw", None),
];

/// The subject that plays a row, and its patience. A patience of his is one of ours.
fn subject(row: &Row) -> (&'static str, Option<u32>) {
    let known = LETTERS.iter().find(|known| known.0 == row.letter);
    let &(_, subject, patience_ns) = known.expect("rows have letters of the legend");
    (subject, if row.patience_us > 0 { Some(1000 * row.patience_us) } else { patience_ns })
}

/// The job of a row.
fn job(row: &Row, threads: bool) -> Job {
    let (subject, patience_ns) = subject(row);
    let workers = if threads { Workers::Threads(row.children) } else { Workers::Processes(row.children) };
    let turns = Turns {
        times: row.times,
        workers,
        read_share: row.readers.unwrap_or(0),
        locks: row.locks,
        timed: false,
        least_ms: 0,
        counted: true,
        patience_ns,
    };
    let section = units::times(row.times);
    let label = format!("{} children, {} locks, {}", row.children, row.locks, letter(row));
    Job {
        cell: Cell { section, label, x: None, scenario: Scenario::Turns(turns) },
        subjects: vec![subject.into()],
    }
}

fn letter(row: &Row) -> String {
    match (row.readers, row.patience_us) {
        (Some(share), _) => format!("s{share}"),
        (None, 0) => row.letter.into(),
        (None, us) => format!("{} p {us}", row.letter),
    }
}

/// His whole table, beside today's.
pub fn tables(record: &Record) -> Vec<MailTable> {
    let rows = franke::rows().iter().map(|then| line(record, then)).collect();
    vec![MailTable {
        title: "Franke 2002, PERFORMANCE and SHARED LOCKS: loops a second of all children".into(),
        header: HEADER.to_vec(),
        rows,
        today: TODAY,
    }]
}

const HEADER: &[&str] = &[
    "c", "a", "i", "L", "p", "r", "x", "WC", "RC", "R", "COV", "ThPut", "by k", "CPU/op", "2002 WC", "RC",
    "R", "COV", "ThPut", "by k",
];

const TODAY: &[&str] = &[
    "c children, a locks, i runs (a * if ThPut is not known to 5 %), p patience in us, r and x mean us",
    "outside and inside, WC and RC exclusive and shared acquisitions that found the lock taken in per cent;",
    "R for f and F: contended acquisitions that spinning resolved in per cent; for c and C: sleeps for one;",
    "COV of the children; ThPut loops a second; by k: by System V's semaphore in the same cell.",
    "L: e none, k sysv, f semaphore that sleeps, F semaphore, c calock that sleeps, C calock, s psrw.",
    "Today the patience of F and C at p 0 is chosen by the lock, and t is a tenth of a second, not ten.",
    "Where WC, RC or R is `-`, the lock has no counters inside: e, k, and what runs as s.",
    "Rows with a thousand children have too few loops a child in so short a run for COV to be fair.",
];

fn line(record: &Record, then: &Row) -> Vec<String> {
    let find = |row: &Row| {
        let wanted = job(row, false);
        let is_it = |cell: &Cell| match (cell.scenario, wanted.cell.scenario) {
            (Scenario::Turns(mine), Scenario::Turns(wanted)) => {
                // Children may have been threads.
                Turns { workers: wanted.workers, ..mine } == wanted && mine.workers.count() == row.children
            }
            _ => false,
        };
        record.line(record.cells.iter().position(is_it)?, &wanted.subjects[0])
    };
    let kernel = |row: &Row| {
        let is_it = |other: &&Row| {
            other.letter == 'k'
                && (other.children, other.locks, other.times) == (row.children, row.locks, row.times)
        };
        franke::rows().iter().find(is_it)
    };
    let today = find(then);
    let figure = |name: &str| today.and_then(|line| line.measured(name)).map(|measured| measured.value);
    let per_cent = |name: &str| figure(name).map_or("-".into(), |share| format!("{:.2}", 100.0 * share));
    let rate = today.and_then(|line| line.measured("rate"));
    let runs = today.map_or(0, |line| line.values("rate").len());
    let settled = rate.as_ref().and_then(|rate| rate.interval).is_some_and(|(low, high)| {
        rate.as_ref().is_some_and(|rate| high / rate.value < 1.05 && rate.value / low < 1.05)
    });
    let by_kernel =
        today.zip(kernel(then).and_then(find)).and_then(|(mine, other)| mine.ratio(other, "rate"));
    let us = |ns: u64| (ns / 1000).to_string();
    let resolved = match then.letter {
        'f' | 'F' => per_cent("spun"),
        _ => figure("reentries").map_or("-".into(), |sleeps| format!("{sleeps:.2}")),
    };
    vec![
        then.children.to_string(),
        then.locks.to_string(),
        if runs == 0 { "-".into() } else { format!("{runs}{}", if settled { "" } else { "*" }) },
        then.readers.map_or(then.letter.to_string(), |share| format!("s{share}")),
        then.patience_us.to_string(),
        us(then.times.think_ns),
        us(then.times.hold_ns),
        per_cent("contended"),
        per_cent("read-contended"),
        resolved,
        figure("cov").map_or("-".into(), |cov| format!("{cov:.4}")),
        rate.map_or("-".into(), |rate| match rate.modes {
            Some((slow, fast)) => format!("{:.0}|{:.0}", slow.per_s, fast.per_s),
            None => format!("{:.0}", rate.value),
        }),
        by_kernel.map_or("-".into(), |ratio| units::fixed(ratio.value)),
        figure("cpu").map_or("-".into(), units::time),
        format!("{:.2}", then.contended),
        format!("{:.2}", then.read_contended),
        format!("{:.2}", then.resolved),
        format!("{:.4}", then.cov),
        format!("{:.0}", then.per_s),
        kernel(then).map_or("-".into(), |kernel| units::fixed(then.per_s / kernel.per_s)),
    ]
}

/// The jobs of his table, or of those of its rows that are `wanted`.
pub fn jobs(threads: bool, wanted: impl Fn(&Row) -> bool) -> Vec<Job> {
    franke::rows().iter().filter(|row| wanted(row)).map(|row| job(row, threads)).collect()
}

/// A job for numbers of his columns that are no row of his.
pub fn own_job(row: &Row, threads: bool) -> Job {
    job(row, threads)
}
