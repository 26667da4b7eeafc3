//! `tofutex`: the program of Long's mail of 2016. Each of many threads locks and unlocks one lock a
//! number of times, and notes when it is done: the spread of these times shows fairness, and the
//! last of them throughput. His section is short in one table, and sleeps for a microsecond in the
//! other.

use super::{Case, Column, Locks, MailTable, Program, table, text, text_of};
use crate::engine::cell::{Cell, Job};
use crate::engine::plan::Order;
use crate::engine::record::{Line, Record};
use crate::report::units;
use crate::run::pinning::Pin;
use crate::workloads::Scenario;
use crate::workloads::fixed::{Fixed, Inside};
use anyhow::Result;
use clap::Args;

/// The name of its records.
pub const ROW: &str = "tofutex";

/// What runs when the command line names no locks.
pub const SUBJECTS: [&str; 8] =
    ["wait-wake", "pi", "throughput", "unfair", "calock", "fair", "std", "parking_lot"];

/// Pauses of the short section.
const SHORT: u32 = 10;
/// Nanoseconds of the sleep.
const SLEEP_NS: u64 = 1_000;

/// Measures locks as Waiman Long did in his mail on throughput-optimised futexes of 2016.
///
/// Threads lock and unlock one lock a number of times. Reported are the times until they are done,
/// the system time, the calls to the kernel, and the waits.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Threads that want the lock
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: u32,
    /// Operations with the short section, all threads together; his were 10,000,000
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    operations: u64,
    /// Operations with the section that sleeps, all threads together; his were 100,000
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    sleeps: u64,
    #[command(flatten)]
    locks: Locks,
}

impl Program for Arguments {
    const NAME: &'static str = "tofutex";

    fn order(&self, rounds: u32) -> Result<Order> {
        let each = |all: u64| all.div_ceil(u64::from(self.threads));
        let [operations, sleeps] = [self.operations, self.sleeps].map(each);
        let jobs = jobs(self.threads, operations, sleeps, &self.locks.or(&SUBJECTS));
        Ok(Order::new(ROW, jobs, 1, rounds, Pin::None))
    }

    fn shown(&self, record: &Record) -> String {
        text(tables(record), sentence(record))
    }
}

/// What his mail says, said of today.
fn sentence(record: &Record) -> Option<String> {
    let ratio = |figure| record.ratio((0, "throughput"), (0, "wait-wake"), figure);
    let [last, mean] = [ratio("last")?, ratio("mean-done")?].map(|ratio| units::ratio(Some(ratio)));
    Some(format!(
        "Short section: the throughput-optimised lock takes {last} of the wait-wake futex's time \
         until all are done, {mean} on average; in 2016 0.76 and 0.54.\n"
    ))
}

/// His two tables, of `threads` threads with so many operations each.
pub fn jobs(threads: u32, each: u64, sleeps_each: u64, subjects: &[String]) -> Vec<Job> {
    let runs = [
        ("short section", Inside::Pauses(SHORT), each),
        ("1 us sleep", Inside::Sleep(SLEEP_NS), sleeps_each),
    ];
    let job = |(section, inside, operations): (&str, Inside, u64)| {
        let scenario = Scenario::Fixed(Fixed { threads, operations, inside });
        let label = format!("{threads} threads, {operations} operations each");
        let cell = Cell { section: section.into(), label, x: None, scenario };
        Job { cell, subjects: subjects.to_vec() }
    };
    runs.into_iter().filter(|run| run.2 > 0).map(job).collect()
}

/// What he measured of one futex: seconds, and calls into the kernel of one operation.
struct Then {
    subject: &'static str,
    name: &'static str,
    last_s: f64,
    first_s: f64,
    mean_s: f64,
    system_s: Option<f64>,
    calls: Option<(f64, f64)>,
}

const OPERATIONS: f64 = 10_000_000.0;

/// His two tables. The labels of the longest and the shortest time are exchanged in the second one:
/// his longest time is below the mean.
#[rustfmt::skip]
const THEN: [[Then; 3]; 2] = [
    [
        Then { subject: "wait-wake", name: "wait-wake futex", last_s: 3.49, first_s: 3.24, mean_s: 3.41, system_s: Some(442.4), calls: Some((3_090_294.0 / OPERATIONS, 3_268_896.0 / OPERATIONS)) },
        Then { subject: "pi", name: "PI futex", last_s: 50.91, first_s: 50.84, mean_s: 50.90, system_s: Some(55.73), calls: Some((9_999_813.0 / OPERATIONS, 9_999_814.0 / OPERATIONS)) },
        Then { subject: "throughput", name: "TO futex", last_s: 2.65, first_s: 0.07, mean_s: 1.84, system_s: Some(152.9), calls: Some((698_318.0 / OPERATIONS, 134.0 / OPERATIONS)) },
    ],
    [
        Then { subject: "wait-wake", name: "wait-wake futex", last_s: 5.59, first_s: 0.06, mean_s: 3.25, system_s: None, calls: None },
        Then { subject: "pi", name: "PI futex", last_s: 9.36, first_s: 9.32, mean_s: 9.35, system_s: None, calls: None },
        Then { subject: "throughput", name: "TO futex", last_s: 5.62, first_s: 4.76, mean_s: 5.41, system_s: None, calls: None },
    ],
];

/// Of every five sleeps of his wait-wake futex four were refused.
const REFUSED_THEN: &str = "80 %";

/// His two tables beside today's, and the waits, for which Gleixner asked.
pub fn tables(record: &Record) -> Vec<MailTable> {
    let of = |(at, cell): (usize, &Cell)| {
        let his = format!("Long 2016, {}: {}", cell.section, cell.label);
        let waits = format!("Waits of an acquisition, {}", cell.section);
        // A record of before the waits were timed has none.
        let timed = record.lines.iter().any(|line| line.cell == at && line.measured("wait-mean").is_some());
        let waits = timed.then(|| table(record, at, waits, WAITS, &[])).flatten();
        table(record, at, his, COLUMNS, TODAY).into_iter().chain(waits)
    };
    record.cells.iter().enumerate().flat_map(of).collect()
}

const COLUMNS: &[Column] = &[
    ("lock", name),
    ("max", |case| case.value("last")),
    ("by first", |case| case.ratio("last")),
    ("2016", |case| then(case, |then| Some(then.last_s))),
    ("min", |case| case.value("first")),
    ("by max", spread),
    ("2016", spread_then),
    ("average", |case| case.value("mean-done")),
    ("by first", |case| case.ratio("mean-done")),
    ("2016", |case| then(case, |then| Some(then.mean_s))),
    ("sys/op", |case| case.value("system")),
    ("by first", |case| case.ratio("system")),
    ("2016", |case| then(case, |then| then.system_s)),
    ("lock calls", |case| case.value("sleep-calls")),
    ("2016", |case| text_of(find(case, case.line).and_then(|then| Some(then.calls?.0)), units::digits)),
    ("unlock calls", |case| case.value("wake-calls")),
    ("2016", |case| text_of(find(case, case.line).and_then(|then| Some(then.calls?.1)), units::digits)),
    ("refused", |case| case.value("refused")),
    ("2016", |case| match find(case, case.line) {
        Some(Then { subject: "wait-wake", calls: Some(_), .. }) => REFUSED_THEN.into(),
        _ => "-".into(),
    }),
];

const TODAY: &[&str] = &[
    "max, min, average: until the last thread was done, until the first was, and of a thread in the mean;",
    "by first: by the first lock of the table; by max: the first by the last thread, small where unfair;",
    "sys/op: time in the kernel for an operation; calls: entries into the kernel; refused: calls to sleep",
    "that ended with EAGAIN. 2016: the same ratios in the mail, its calls for an operation, its refusals.",
    "His mail says neither how many threads nor which machine there was; he gave no calls and no system",
    "time for the section that sleeps. `throughput` stands beside his TO futex.",
];

const WAITS: &[Column] = &[
    ("lock", |case| case.line.subject.clone()),
    ("mean", |case| case.value("wait-mean")),
    ("p50", |case| case.value("wait-p50")),
    ("p99", |case| case.value("wait-p99")),
    ("p99.9", |case| case.value("wait-p99.9")),
    ("longest", |case| case.value("wait-max")),
];

/// His row of a lock.
fn find(case: &Case<'_>, line: &Line) -> Option<&'static Then> {
    let sleeps = matches!(case.scenario(), Scenario::Fixed(Fixed { inside: Inside::Sleep(_), .. }));
    THEN[usize::from(sleeps)].iter().find(|then| then.subject == line.subject)
}

fn name(case: &Case<'_>) -> String {
    let subject = &case.line.subject;
    find(case, case.line).map_or(subject.clone(), |then| format!("{subject} ({})", then.name))
}

/// A figure of his by that of his first lock.
fn then(case: &Case<'_>, get: fn(&Then) -> Option<f64>) -> String {
    let [mine, first] = [case.line, case.first].map(|line| find(case, line).and_then(get));
    text_of(mine.zip(first).map(|(mine, first)| mine / first), units::digits)
}

fn spread(case: &Case<'_>) -> String {
    text_of(case.number("first").zip(case.number("last")).map(|(first, last)| first / last), units::digits)
}

fn spread_then(case: &Case<'_>) -> String {
    text_of(find(case, case.line).map(|then| then.first_s / then.last_s), units::digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::kept;
    use std::path::Path;

    #[test]
    fn the_kept_record_has_calls_for_an_operation_and_no_empty_table() {
        let kept = "results/2026-11-24-epyc-2cpu-kvm.json";
        let records = kept::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(kept)).unwrap();
        let record = records.iter().find(|record| record.row == ROW).unwrap();
        // A lock may try again, but hardly ten times.
        for name in ["sleep-calls", "wake-calls"] {
            let calls = record.lines.iter().flat_map(|line| line.values(name));
            assert!(calls.clone().count() > 0 && calls.into_iter().all(|calls| calls < 10.0), "{name}");
        }
        for table in tables(record) {
            let known = |row: &Vec<String>| row[1..].iter().any(|cell| cell != "-");
            assert!(table.table.rows.iter().any(known), "{}", table.title);
        }
    }
}
