//! `ulockflex`: the program of Franke's mail of 2002. Children run `outside; lock; inside; unlock`
//! in a loop; reported are their loops a second, how evenly they share them, and how often the lock
//! was contended. His children were processes; today they are threads, since the calock and the
//! semaphore are locks of one process.
//!
//! Without arguments it runs every row of his mail. His columns stand first, then those of 2002.

use super::franke::{self, Row};
use super::{MailTable, Program, text_of};
use crate::engine::cell::{Cell, Job};
use crate::engine::options::{self, List};
use crate::engine::plan::Order;
use crate::engine::record::{Line, Record};
use crate::engine::run;
use crate::report::units;
use crate::run::busy_work;
use crate::run::pinning::Pin;
use crate::workloads::turns::Turns;
use crate::workloads::{Scenario, Times, Workers};
use anyhow::{Result, ensure};
use clap::Args;
use std::time::Duration;

/// The name of its records.
pub const ROW: &str = "ulockflex";

/// Measures locks as Hubertus Franke's ulockflex of 2002 did.
///
/// Children run `outside; lock; inside; unlock` in a loop. Without arguments every row of his mail
/// is run. Options are called as his columns; each narrows his table down, and with a number that
/// is not in it (`-c 8`) rows of that number are run, too.
#[derive(Args, Debug)]
pub struct Arguments {
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
    /// The greatest number, where ThPut is not known to 5 % before
    #[arg(short = 'm', value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=100))]
    most: u32,
    /// Iterations of the busy work that take a microsecond, instead of a calibration
    #[arg(short = 'R', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calibration: Option<u32>,
    /// Leave children where the scheduler puts them, instead of pinning them
    #[arg(short = 'P')]
    unpinned: bool,
}

fn letters(text: &str) -> Result<String> {
    let allowed: String = LETTERS.iter().map(|known| known.0).collect();
    ensure!(
        !text.is_empty() && text.chars().all(|letter| allowed.contains(letter)),
        "'{text}' has a letter of no lock; allowed: {allowed}"
    );
    Ok(text.into())
}

impl Program for Arguments {
    const NAME: &'static str = "ulockflex";

    fn rounds(option: clap::Arg) -> clap::Arg {
        option.short('o').default_value("5").help("The least number of runs of a row")
    }

    fn order(&self, rounds: u32) -> Result<Order> {
        let jobs = rows(self)?.iter().map(job).collect();
        let window_ms = (self.seconds.as_millis() as u64).max(1);
        let pin = if self.unpinned { Pin::None } else { Pin::default() };
        let iterations_per_us = self.calibration.map(f64::from);
        Ok(Order { iterations_per_us, ..Order::new(ROW, jobs, window_ms, rounds, pin) })
    }

    /// His rule: a row has more runs until its throughput is known.
    fn run(&self, order: &Order) -> Result<(Record, Option<i32>)> {
        // One calibration for all of them.
        let iterations_per_us = order.iterations_per_us.or_else(|| Some(busy_work::calibrate()));
        let order = &Order { iterations_per_us, ..order.clone() };
        let (mut record, mut signal) = run::run(order)?;
        for _ in order.rounds..self.most {
            let open = record.lines.iter().filter(|line| !is_settled(line));
            let jobs: Vec<Job> = open.map(|line| order.jobs[line.cell].clone()).collect();
            if signal.is_some() || jobs.is_empty() {
                break;
            }
            let (more, interrupted) = run::run(&Order { jobs, rounds: 1, ..order.clone() })?;
            append(&mut record, &more);
            (signal, record.ended) = (interrupted, more.ended);
        }
        Ok((record, signal))
    }

    fn shown(&self, record: &Record) -> String {
        let title = format!("{}\nchildren are threads, runs of {} ms", record.machine, record.window_ms);
        let rows = rows(self).unwrap_or_default();
        table(title, record, &rows).text() + &sentence(record).unwrap_or_default()
    }
}

/// The rows that are asked for: those of his table that fit, and where no row fits the numbers,
/// rows of these numbers.
fn rows(asked: &Arguments) -> Result<Vec<Row>> {
    let us = |time: Option<u64>| time.unwrap_or(0);
    let own_times = asked.outside.is_some() || asked.inside.is_some();
    let times = own_times.then(|| Times::us(us(asked.inside), us(asked.outside)));
    let is_in = |list: &Option<List<u32>>, n: u32| list.as_ref().is_none_or(|list| list.0.contains(&n));
    let is_kind = |row: &&Row| {
        asked.letters.as_ref().is_none_or(|letters| letters.contains(row.letter))
            && asked.patience.is_none_or(|us| us == row.patience_us)
    };
    let kinds = || franke::rows().iter().filter(is_kind);
    let his = kinds().filter(|row| is_in(&asked.children, row.children) && is_in(&asked.locks, row.locks));
    let mut rows: Vec<Row> =
        his.filter(|row| times.is_none_or(|times| times == row.times)).copied().collect();
    // As his rows of two children, with numbers that he has not.
    let one = List(vec![1]);
    for &children in asked.children.iter().flat_map(|list| &list.0) {
        for &locks in &asked.locks.as_ref().unwrap_or(&one).0 {
            let is_his = rows.iter().any(|row| (row.children, row.locks) == (children, locks));
            for row in kinds().filter(|row| !is_his && (row.children, row.locks) == (2, 1)) {
                let times = times.unwrap_or(row.times);
                let row = Row { children, locks, times, then: None, ..*row };
                if !rows.contains(&row) {
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
fn sentence(record: &Record) -> Option<String> {
    let is_it = |row: &&Row| row.children == 100 && row.times == Times::us(1, 9);
    let row = |letter| franke::rows().iter().filter(is_it).find(|row| row.letter == letter);
    let (calock, kernel) = (row('C')?, row('k')?);
    let today = units::ratio(Some(find(record, calock)?.ratio(find(record, kernel)?, "rate")?));
    let then = text_of(by(calock, kernel), units::fixed);
    Some(format!(
        "With 100 children at (1, 9) us the calock has {today} of System V's rate; in 2002 {then}.\n"
    ))
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
fn job(row: &Row) -> Job {
    let (subject, patience_ns) = subject(row);
    let turns = Turns {
        times: row.times,
        workers: Workers::Threads(row.children),
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
    let title = "Franke 2002, PERFORMANCE and SHARED LOCKS: loops a second of all children";
    vec![table(title.into(), record, franke::rows())]
}

fn table(title: String, record: &Record, rows: &[Row]) -> MailTable {
    let rows = rows.iter().map(|row| line(record, row)).collect();
    let mut shown = MailTable::new(title, HEADER, rows, TODAY);
    // They say which row it is, in each part of a table that does not fit.
    shown.table.left = KEYS;
    shown
}

/// The first columns, up to `x`.
const KEYS: usize = 7;

const HEADER: [&str; 19] = [
    "c", "a", "i", "L", "p", "r", "x", "WC", "R", "COV", "ThPut", "by k", "CPU/op", "2002 WC", "RC", "R",
    "COV", "ThPut", "by k",
];

const TODAY: &[&str] = &[
    "c children, a locks, i runs (a * if ThPut is not known to 5 %), p patience in us, r and x mean us",
    "outside and inside, WC (of 2002 also RC) exclusive (shared) ones that found the lock taken in %;",
    "R for f and F: contended acquisitions that spinning resolved in %; for c and C: sleeps for one;",
    "COV of the children; ThPut loops a second; by k: by System V's semaphore in the same cell.",
    "L: e none, k sysv, f semaphore that sleeps, F semaphore, c calock that sleeps, C calock, s psrw.",
    "Today the patience of F and C at p 0 is chosen by the lock, and t is a tenth of a second, not ten.",
    "Where WC or R is `-`, the lock has no counters inside: e, k, and what runs as s.",
    "Rows with a thousand children have too few loops a child in so short a run for COV to be fair.",
];

/// Today's line of a row.
fn find<'a>(record: &'a Record, row: &Row) -> Option<&'a Line> {
    // Locks that play two letters differ in patience, and so in the scenario.
    let scenario = job(row).cell.scenario;
    let is_it = |line: &&Line| record.cells[line.cell].scenario == scenario;
    record.lines.iter().filter(is_it).find(|line| line.subject == subject(row).0)
}

/// His throughput of a row by that of another.
fn by(row: &Row, other: &Row) -> Option<f64> {
    Some(row.per_s()? / other.per_s()?)
}

fn line(record: &Record, then: &Row) -> Vec<String> {
    let kernel = Row { letter: 'k', patience_us: 0, readers: None, ..*then };
    let his_kernel = franke::rows().iter().find(|row| job(row) == job(&kernel));
    let today = find(record, then);
    let figure = |name: &str| today.and_then(|line| line.measured(name)).map(|measured| measured.value);
    let per_cent = |name: &str| text_of(figure(name), |share| format!("{:.2}", 100.0 * share));
    let runs = today.map_or(0, |line| line.values("rate").len());
    let star = if today.is_some_and(is_settled) { "" } else { "*" };
    let rate = today.and_then(|line| line.measured("rate")).map(|rate| match rate.modes {
        Some((slow, fast)) => format!("{slow:.0}|{fast:.0}"),
        None => format!("{:.0}", rate.value),
    });
    let by_kernel = today.zip(find(record, &kernel)).and_then(|(mine, other)| mine.ratio(other, "rate"));
    let fixed = |value: Option<f64>, digits: usize| text_of(value, |value| format!("{value:.digits$}"));
    let his = |at: usize| then.then.map(|figures| figures[at]);
    vec![
        then.children.to_string(),
        then.locks.to_string(),
        if runs == 0 { "-".into() } else { format!("{runs}{star}") },
        then.readers.map_or(then.letter.to_string(), |share| format!("s{share}")),
        then.patience_us.to_string(),
        (then.times.think_ns / 1000).to_string(),
        (then.times.hold_ns / 1000).to_string(),
        per_cent("contended"),
        match then.letter {
            'f' | 'F' => per_cent("spun"),
            _ => fixed(figure("reentries"), 2),
        },
        fixed(figure("cov"), 4),
        rate.unwrap_or("-".into()),
        text_of(by_kernel.map(|ratio| ratio.value), units::fixed),
        text_of(figure("cpu"), units::time),
        fixed(his(0), 2),
        fixed(his(1), 2),
        fixed(his(2), 2),
        fixed(his(3), 4),
        fixed(his(4), 0),
        text_of(his_kernel.and_then(|kernel| by(then, kernel)), units::fixed),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mails::CommandLine;
    use clap::Parser;

    #[test]
    fn each_part_of_the_table_says_which_row_it_is() {
        let shown = table("all".into(), &crate::report::fixture::plain(1), franke::rows());
        let mut heads = 0;
        for part in shown.table.fitting(true) {
            assert_eq!(part.head[..KEYS], HEADER[..KEYS]);
            let keys: std::collections::HashSet<_> = part.rows.iter().map(|row| &row[..KEYS]).collect();
            assert_eq!(keys.len(), 167);
            heads += part.head.len() - KEYS;
        }
        assert_eq!(heads, HEADER.len() - KEYS);
        assert!(TODAY.iter().all(|line| line.len() <= 100));
    }

    #[test]
    fn options_narrow_his_table_or_ask_for_numbers_that_he_has_not() {
        let asked = |options: &str| {
            let words = ["ulockflex"].into_iter().chain(options.split_whitespace());
            rows(&CommandLine::<Arguments>::try_parse_from(words).unwrap().program)
        };
        // How many rows, and how many of them are his.
        for (options, all, his) in
            [("", 167, 167), ("-c 2 -L kC", 21, 21), ("-c 8 -a 2 -L k", 4, 0), ("-c 8 -L k -r 5", 1, 0)]
        {
            let rows = asked(options).unwrap();
            let known = rows.iter().filter(|row| row.then.is_some()).count();
            assert_eq!((rows.len(), known), (all, his), "{options}");
        }
        assert!(asked("-c 2 -p 7").unwrap_err().to_string().starts_with("no row of his table fits"));
    }
}
