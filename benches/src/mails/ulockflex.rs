//! `ulockflex`: the program of Franke's mail of 2002. Children run `outside; lock; inside; unlock`
//! in a loop; reported are their loops a second, how evenly they share them, and how often the lock
//! was contended.
//!
//! Without arguments it runs every row of his mail. His columns stand first, then those of 2002.

use super::MailTable;
use super::franke::{self, Row};
use super::keep;
use crate::engine::cell::{Cell, Job};
use crate::engine::files;
use crate::engine::options::{self, List};
use crate::engine::plan::Order;
use crate::engine::progress::{print, say};
use crate::engine::record::{Line, Record};
use crate::engine::run::{self, exit_code, serve_or};
use crate::report::units;
use crate::run::pinning::Pin;
use crate::workloads::turns::Turns;
use crate::workloads::{Scenario, Times, Workers};
use anyhow::{Result, ensure};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The name of its records.
pub const ROW: &str = "ulockflex";

/// Measures locks as Hubertus Franke's ulockflex of 2002 did.
///
/// Children run `outside; lock; inside; unlock` in a loop. Without arguments every row of his mail
/// is run. Options are called as his columns; each narrows his table down, and with a number that
/// is not in it (`-c 8`) rows of that number are run, too.
#[derive(Parser, Debug)]
#[command(name = "ulockflex", version)]
struct Arguments {
    /// Numbers of children
    #[arg(short = 'c', long = "children", value_name = "LIST", value_parser = options::counts)]
    children: Option<List<u32>>,
    /// Numbers of locks; child i uses lock i modulo a
    #[arg(short = 'a', value_name = "LIST", value_parser = options::counts)]
    locks: Option<List<u32>>,
    /// Letters of locks, such as kcC; s is the reader-writer lock
    #[arg(short = 'L', value_name = "LETTERS", value_parser = letters)]
    letters: Option<String>,
    /// Patience of spinning, in microseconds: 0 or 3
    #[arg(short = 'p', value_name = "US")]
    patience: Option<u32>,
    /// Mean time outside, in microseconds
    #[arg(short = 'r', value_name = "US", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    outside: Option<u64>,
    /// Mean time inside, in microseconds
    #[arg(short = 'x', value_name = "US", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    inside: Option<u64>,
    /// Length of a run, in seconds; his took 10
    #[arg(short = 't', long = "seconds", value_name = "S", default_value = "0.1", value_parser = options::seconds)]
    seconds: Duration,
    /// The least number of runs of a row
    #[arg(short = 'o', value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    least: u32,
    /// The greatest number, where ThPut is not known to 5 % before
    #[arg(short = 'm', value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=100))]
    most: u32,
    /// Iterations of the busy work that take a microsecond, instead of a calibration
    #[arg(short = 'R', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calibration: Option<u32>,
    /// Leave children where the scheduler puts them, instead of pinning them
    #[arg(short = 'P')]
    unpinned: bool,
    /// Children are threads instead of processes
    #[arg(long)]
    threads: bool,
    /// Write the record here [default: ulockflex.json in ulocks-report of the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn letters(text: &str) -> Result<String> {
    let allowed: String = LETTERS.iter().map(|known| known.0).collect();
    ensure!(
        !text.is_empty() && text.chars().all(|letter| allowed.contains(letter)),
        "'{text}' has a letter of no lock; allowed: {allowed}"
    );
    Ok(text.into())
}

/// The program.
pub fn main() -> ExitCode {
    serve_or(|| {
        let arguments: Arguments = options::parse();
        let rows = rows(&arguments).unwrap_or_else(|error| options::refuse(&error));
        if let Some(file) = &arguments.json {
            files::writable("--json", file).unwrap_or_else(|error| options::refuse(&error));
        }
        let folder = if arguments.json.is_none() { Some(files::writable_folder()?) } else { None };
        let jobs: Vec<Job> = rows.iter().map(|row| job(row, arguments.threads)).collect();
        let window_ms = (arguments.seconds.as_millis() as u64).max(1);
        let pin = if arguments.unpinned { Pin::None } else { Pin::default() };
        let mut order = Order::new(ROW, jobs, window_ms, arguments.least, pin);
        order.iterations_per_us = arguments.calibration.map(f64::from);
        say(&order.summary());
        let (mut record, mut signal) = run::run(&order)?;
        // His rule: a row has more runs until its throughput is known.
        for _ in arguments.least..arguments.most.max(arguments.least) {
            let unsettled = |line: &&Line| !is_settled(line);
            let open: Vec<usize> = record.lines.iter().filter(unsettled).map(|line| line.cell).collect();
            if signal.is_some() || open.is_empty() {
                break;
            }
            let jobs = open.iter().map(|&at| order.jobs[at].clone()).collect();
            let (more, interrupted) = run::run(&Order { jobs, rounds: 1, ..order.clone() })?;
            append(&mut record, &more);
            signal = interrupted;
        }
        keep(&record, folder, arguments.json)?;
        let header = HEADER.to_vec();
        let lines = rows.iter().map(|row| line(&record, row)).collect();
        let title = format!(
            "{}\nchildren are {}, runs of {} ms",
            record.machine,
            if arguments.threads { "threads" } else { "processes" },
            window_ms
        );
        let text = MailTable { title, header, rows: lines, today: TODAY }.text();
        let printed = print(&(text + &sentence(&record)));
        Ok(if signal.is_some() { exit_code(signal) } else { printed })
    })
}

/// The rows that are asked for: those of his table that fit, and where no row fits the numbers, rows
/// of these numbers.
fn rows(arguments: &Arguments) -> Result<Vec<Row>> {
    let own_times = arguments.outside.is_some() || arguments.inside.is_some();
    let times = Times::us(arguments.inside.unwrap_or(0), arguments.outside.unwrap_or(0));
    let in_list = |list: &Option<List<u32>>, n: u32| list.as_ref().is_none_or(|list| list.0.contains(&n));
    let has_letter = |row: &Row| arguments.letters.as_ref().is_none_or(|known| known.contains(row.letter));
    let fits = |row: &&Row| {
        has_letter(row)
            && in_list(&arguments.children, row.children)
            && in_list(&arguments.locks, row.locks)
            && arguments.patience.is_none_or(|us| us == row.patience_us)
            && (!own_times || row.times == times)
    };
    let mut rows: Vec<Row> = franke::rows().iter().filter(fits).copied().collect();
    let one = |list: &Option<List<u32>>| list.as_ref().map_or(vec![1], |list| list.0.clone());
    for &children in &arguments.children.as_ref().map_or(Vec::new(), |list| list.0.clone()) {
        for &locks in &one(&arguments.locks) {
            let is_his = rows.iter().any(|row| row.children == children && row.locks == locks);
            if is_his {
                continue;
            }
            // As his rows of two children, with these numbers.
            let kinds = franke::rows().iter().filter(|row| row.children == 2 && row.locks == 1);
            let kinds = kinds.filter(|row| has_letter(row));
            let kinds = kinds.filter(|row| arguments.patience.is_none_or(|us| us == row.patience_us));
            let wanted = |row: &Row| Row {
                children,
                locks,
                times: if own_times { times } else { row.times },
                contended: f64::NAN,
                read_contended: f64::NAN,
                resolved: f64::NAN,
                cov: f64::NAN,
                per_s: f64::NAN,
                ..*row
            };
            for row in kinds.map(wanted) {
                let alike = |known: &&Row| job(known, false) == job(&row, false);
                if rows.iter().find(alike).is_none() {
                    rows.push(row);
                }
            }
        }
    }
    ensure!(!rows.is_empty(), "no row of his table fits these options; -c names children of your own");
    Ok(rows)
}

/// Adds the rounds of `more`, whose cells are some of those of `record`.
fn append(record: &mut Record, more: &Record) {
    for line in &more.lines {
        let cell = &more.cells[line.cell];
        let Some(at) = record.cells.iter().position(|known| known == cell) else { continue };
        if let Some(known) = record.lines.iter_mut().find(|known| known.cell == at) {
            for (name, values) in &line.rounds {
                known.rounds.entry(name.clone()).or_default().extend(values);
            }
        }
    }
}

/// Whether the throughput is known to 5 %.
fn is_settled(line: &Line) -> bool {
    let Some(rate) = line.measured("rate") else { return false };
    rate.interval.is_some_and(|(low, high)| high / rate.value < 1.05 && rate.value / low < 1.05)
}

/// What his mail is quoted for, said of today.
fn sentence(record: &Record) -> String {
    let row = |letter| {
        let is_it = |row: &&Row| row.letter == letter && row.children == 100 && row.times == Times::us(1, 9);
        franke::rows().iter().find(is_it)
    };
    let (Some(calock), Some(kernel)) = (row('C'), row('k')) else { return String::new() };
    let ratio = find(record, calock).zip(find(record, kernel)).and_then(|(mine, k)| mine.ratio(k, "rate"));
    let Some(ratio) = ratio else { return String::new() };
    format!(
        "With 100 children at (1, 9) us the calock has {} of System V's rate; in 2002 {}.\n",
        units::ratio(Some(ratio)),
        units::fixed(calock.per_s / kernel.per_s)
    )
}

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

/// Today's line of a row.
fn find<'a>(record: &'a Record, row: &Row) -> Option<&'a Line> {
    let wanted = job(row, false);
    let is_it = |cell: &Cell| match (cell.scenario, wanted.cell.scenario) {
        (Scenario::Turns(mine), Scenario::Turns(wanted)) => {
            // Children may have been threads.
            Turns { workers: wanted.workers, ..mine } == wanted && mine.workers.count() == row.children
        }
        _ => false,
    };
    // Locks that play two letters differ in patience, and so in the cell.
    let cell = (0..record.cells.len())
        .find(|&at| is_it(&record.cells[at]) && record.line(at, &wanted.subjects[0]).is_some())?;
    record.line(cell, &wanted.subjects[0])
}

fn line(record: &Record, then: &Row) -> Vec<String> {
    let kernel = Row { letter: 'k', patience_us: 0, readers: None, ..*then };
    let his_kernel = franke::rows().iter().find(|row| job(row, false) == job(&kernel, false));
    let today = find(record, then);
    let figure = |name: &str| today.and_then(|line| line.measured(name)).map(|measured| measured.value);
    let per_cent = |name: &str| figure(name).map_or("-".into(), |share| format!("{:.2}", 100.0 * share));
    let rate = today.and_then(|line| line.measured("rate"));
    let runs = today.map_or(0, |line| line.values("rate").len());
    let settled = today.is_some_and(is_settled);
    let by_kernel = today.zip(find(record, &kernel)).and_then(|(mine, other)| mine.ratio(other, "rate"));
    let us = |ns: u64| (ns / 1000).to_string();
    let his =
        |value: f64, digits: usize| if value.is_finite() { format!("{value:.digits$}") } else { "-".into() };
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
            Some((slow, fast)) => format!("{slow:.0}|{fast:.0}"),
            None => format!("{:.0}", rate.value),
        }),
        by_kernel.map_or("-".into(), |ratio| units::fixed(ratio.value)),
        figure("cpu").map_or("-".into(), units::time),
        his(then.contended, 2),
        his(then.read_contended, 2),
        his(then.resolved, 2),
        his(then.cov, 4),
        his(then.per_s, 0),
        his_kernel
            .filter(|_| then.per_s.is_finite())
            .map_or("-".into(), |kernel| units::fixed(then.per_s / kernel.per_s)),
    ]
}
