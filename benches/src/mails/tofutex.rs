//! `tofutex`: the program of Long's mail of 2016. Each of many threads locks and unlocks one lock a
//! number of times, and notes when it is done: the spread of these times shows fairness, and the
//! last of them throughput. His section is short in one table, and sleeps for a microsecond in the
//! other.

use super::MailTable;
use super::measure;
use crate::engine::cell::{Cell, Job};
use crate::engine::options::{self, List};
use crate::engine::plan::Order;
use crate::engine::record::{Line, Record};
use crate::engine::run::serve_or;
use crate::report::units;
use crate::run::pinning::Pin;
use crate::workloads::Scenario;
use crate::workloads::fixed::{Fixed, Inside};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

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
#[derive(Parser, Debug)]
#[command(name = "tofutex", version)]
struct Arguments {
    /// Threads that want the lock
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: u32,
    /// Operations with the short section, all threads together; his were 10,000,000
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    operations: u64,
    /// Operations with the section that sleeps, all threads together; his were 100,000
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    sleeps: u64,
    /// How often each lock runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST", value_parser = options::lock_names)]
    locks: Option<List<String>>,
    /// Write the record here [default: tofutex.json in ulocks-report of the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The program.
pub fn main() -> ExitCode {
    serve_or(|| {
        let Arguments { threads, operations, sleeps, rounds, locks, json } = options::parse();
        let subjects = locks.map_or_else(|| SUBJECTS.map(str::to_owned).to_vec(), |list| list.0);
        let each = |all: u64| all.div_ceil(u64::from(threads));
        let jobs = jobs(threads, each(operations), each(sleeps), &subjects);
        measure(&Order::new(ROW, jobs, 1, rounds, Pin::None), json, |record| {
            let tables = tables(record).into_iter();
            tables.map(|table| table.text() + "\n").collect::<String>() + &sentence(record)
        })
    })
}

/// What his mail says, said of today.
fn sentence(record: &Record) -> String {
    let ratio = |figure| record.ratio((0, "throughput"), (0, "wait-wake"), figure);
    let (Some(last), Some(mean)) = (ratio("last"), ratio("mean-done")) else { return String::new() };
    format!(
        "Short section: the throughput-optimised lock takes {} of the wait-wake futex's time until all are done, \
         {} on average; in 2016 0.76 and 0.54.\n",
        units::ratio(Some(last)),
        units::ratio(Some(mean))
    )
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
    let mut tables = Vec::new();
    for (at, cell) in record.cells.iter().enumerate() {
        let Scenario::Fixed(run) = cell.scenario else { continue };
        let table = usize::from(matches!(run.inside, Inside::Sleep(_)));
        let lines: Vec<&Line> = record.lines.iter().filter(|line| line.cell == at).collect();
        let Some(&first) = lines.first() else { continue };
        let rows = lines.iter().map(|line| row(line, first, &run, table)).collect();
        let title = format!("Long 2016, {}: {}", cell.section, cell.label);
        tables.push(MailTable { title, header: HEADER.to_vec(), rows, today: TODAY });
        let waits = lines.iter().map(|line| waits(line)).collect();
        let title = format!("Waits of an acquisition, {}", cell.section);
        tables.push(MailTable { title, header: WAITS.to_vec(), rows: waits, today: &[] });
    }
    tables
}

const HEADER: &[&str] = &[
    "lock",
    "max",
    "by first",
    "2016",
    "min",
    "by max",
    "2016",
    "average",
    "by first",
    "2016",
    "sys/op",
    "by first",
    "2016",
    "lock calls",
    "2016",
    "unlock calls",
    "2016",
    "refused",
    "2016",
];

const TODAY: &[&str] = &[
    "max, min, average: until the last thread was done, until the first was, and of a thread in the mean;",
    "by first: by the first lock of the table; by max: the first by the last thread, small where unfair;",
    "sys/op: time in the kernel for an operation; calls: entries into the kernel for an operation; refused:",
    "calls to sleep that ended with EAGAIN. 2016: the same ratios in the mail, and its share of refusals.",
    "His mail says neither how many threads nor which machine there was; he gave no calls and no system time",
    "for the section that sleeps. `throughput` stands beside his TO futex.",
];

const WAITS: &[&str] = &["lock", "mean", "p50", "p99", "p99.9", "longest"];

fn waits(line: &Line) -> Vec<String> {
    let figures = ["wait-mean", "wait-p50", "wait-p99", "wait-p99.9", "wait-max"];
    let value = |name| line.measured(name).map_or("-".into(), |measured| units::time(measured.value));
    [line.subject.clone()].into_iter().chain(figures.map(value)).collect()
}

fn row(line: &Line, first: &Line, run: &Fixed, table: usize) -> Vec<String> {
    let find = |subject: &str| THEN[table].iter().find(|then| then.subject == subject);
    let (then, then_first) = (find(&line.subject), find(&first.subject));
    let before = |get: fn(&Then) -> Option<f64>| {
        let ratio = then.and_then(get).zip(then_first.and_then(get)).map(|(a, b)| a / b);
        ratio.map_or_else(|| "-".into(), units::digits)
    };
    let value = |name: &str, text: fn(f64) -> String| {
        line.measured(name).map_or("-".into(), |measured| text(measured.value))
    };
    let ratio = |name: &str| match line.ratio(first, name) {
        _ if line.subject == first.subject => "1".into(),
        ratio => ratio.map_or("-".into(), |ratio| units::digits(ratio.value)),
    };
    let operations = run.operations as f64 * f64::from(run.threads);
    let calls =
        |name: &str| line.measured(name).map_or("-".into(), |calls| units::digits(calls.value / operations));
    let calls_then = |get: fn((f64, f64)) -> f64| {
        then.and_then(|then| then.calls).map_or_else(|| "-".into(), |calls| units::digits(get(calls)))
    };
    let spread = line.measured("first").zip(line.measured("last"));
    vec![
        then.map_or(line.subject.clone(), |then| format!("{} ({})", line.subject, then.name)),
        value("last", units::time),
        ratio("last"),
        before(|then| Some(then.last_s)),
        value("first", units::time),
        spread.map_or("-".into(), |(first, last)| units::digits(first.value / last.value)),
        then.map_or("-".into(), |then| units::digits(then.first_s / then.last_s)),
        value("mean-done", units::time),
        ratio("mean-done"),
        before(|then| Some(then.mean_s)),
        value("system", units::time),
        ratio("system"),
        before(|then| then.system_s),
        calls("sleep-calls"),
        calls_then(|calls| calls.0),
        calls("wake-calls"),
        calls_then(|calls| calls.1),
        value("refused", |share| format!("{:.0} %", 100.0 * share)),
        if line.subject == "wait-wake" && table == 0 { REFUSED_THEN.into() } else { "-".into() },
    ]
}
