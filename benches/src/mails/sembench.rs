//! `sembench`: the program of Mason's mail of 2010. Many threads or processes wait, each for a
//! semaphore of its own, and one posts to many at a time; counted are the cycles of post and wait.

use super::{MailTable, measure};
use crate::engine::options::{self, List};
use crate::engine::plan::Order as Plan;
use crate::engine::record::{Line, Record};
use crate::engine::run::serve_or;
use crate::report::units;
use crate::rows::Wish;
use crate::rows::sembench::{ORDERS, one_array, wakes};
use crate::run::pinning::Pin;
use crate::subjects::semaphores::{Entry, FUTEX, KERNEL};
use crate::workloads::semaphores::{Order, Run};
use crate::workloads::{Scenario, Workers};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The row that has the cells of this program, too.
pub const ROW: &str = "sembench";
/// The name of this program's own records.
const OWN: &str = "sembench-own";

/// Counts posts and waits of semaphores as Chris Mason's sembench of 2010 did.
///
/// Many wait, each for a semaphore of its own. One posts to those that are ready, to many at a
/// time, and each that wakes up waits again.
#[derive(Parser, Debug)]
#[command(name = "sembench", version)]
struct Arguments {
    /// Threads that wait [default: 2048, or 64 processes]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: Option<u32>,
    /// Threads woken at a time
    #[arg(short, long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    wakes: u32,
    /// Seconds of a run; his were 30
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = options::seconds)]
    run_time: Duration,
    /// What is waited for, such as sysv,futex,semarray; sysv runs beside them
    #[arg(short, long, value_name = "LIST", value_parser = modes)]
    operations: Option<List<String>>,
    /// Orders in which those that are found ready are woken: fifo, lifo, random
    #[arg(long, value_name = "LIST", default_value = "fifo", value_parser = orders)]
    order: List<(Order, &'static str)>,
    /// Processes, at most 250, in place of the threads
    #[arg(long)]
    processes: bool,
    /// How often each runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Write the record here [default: sembench-own.json in ulocks-report of the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn modes(text: &str) -> Result<List<String>> {
    let part = |entry: &Entry| {
        let run = |workers| Run::Wakes { workers, wakes: 1, order: Order::Fifo };
        [Workers::Threads(1), Workers::Processes(1)].into_iter().any(|workers| run(workers).admits(entry))
    };
    let one = |name: &str| {
        let known = Entry::find(name).is_ok_and(part);
        ensure!(known, "'{name}' is nothing to wait for; allowed: {}", Entry::names(part));
        Ok(name.to_owned())
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

fn orders(text: &str) -> Result<List<(Order, &'static str)>> {
    let find = |name| ORDERS.into_iter().find(|order| order.1 == name);
    let one = |name| find(name).with_context(|| format!("'{name}' is no order; allowed: fifo, lifo, random"));
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

/// The program.
pub fn main() -> ExitCode {
    serve_or(|| {
        let arguments: Arguments = options::parse();
        let wish = Wish { subjects: arguments.operations.map(|list| list.0), ..Wish::default() };
        let workers = match (arguments.processes, arguments.threads) {
            (true, Some(n @ 251..)) => {
                options::refuse(&anyhow::anyhow!("{n} processes; allowed: 1 to 250, as in -t 64"))
            }
            (true, n) => Workers::Processes(n.unwrap_or(64)),
            (false, n) => Workers::Threads(n.unwrap_or(2048)),
        };
        let mut jobs = wakes(&wish, workers, arguments.wakes, &arguments.order.0);
        jobs.extend(one_array(&wish));
        let order =
            Plan::new(OWN, jobs, arguments.run_time.as_millis() as u64, arguments.rounds, Pin::Scatter);
        measure(&order, arguments.json, |record| {
            tables(record).into_iter().map(|table| table.text() + "\n").collect()
        })
    })
}

/// What the mails of 2010 say. Mason, 12 April: before his patch semtimedop "scored about the same
/// as futexes for the post/wait cycles, and so now it is 2x faster"; "it more than doubles the
/// total number of post/wait cycles". By the rate of futexes: before, and with the patch.
const BY_FUTEX_THEN: (f64, f64) = (1.0, 2.0);
/// Spraul, 16 May: "a 4-core, 2 GHz Phenom is able to do ~ 2 million semaphore operations per
/// second in one semaphore array".
const ONE_ARRAY_THEN: f64 = 2e6;

/// His figures beside today's.
pub fn tables(record: &Record) -> Vec<MailTable> {
    let mut tables = Vec::new();
    for (at, cell) in record.cells.iter().enumerate() {
        let lines = record.lines.iter().filter(|line| line.cell == at && !line.values("rate").is_empty());
        let seconds = record.window_ms as f64 / 1e3;
        let Scenario::Semaphores(run) = cell.scenario else { continue };
        let table = |title, header: &[&'static str], rows: Vec<_>, today| {
            (!rows.is_empty()).then(|| MailTable { title, header: header.to_vec(), rows, today })
        };
        tables.extend(match run {
            Run::Wakes { workers, .. } => {
                let [kernel, futex] = [KERNEL, FUTEX].map(|name| record.line(at, name));
                let rows = lines.map(|line| row(line, kernel, futex, (seconds, workers.count()))).collect();
                table(format!("Mason 2010: {}, {}", cell.section, cell.label), HEADER, rows, TODAY)
            }
            Run::Own { threads: 4, poster: false } => {
                // A turn is two operations.
                let rows = lines.map(|line| {
                    let rate = line.measured("rate").map_or("-".into(), |rate| units::rate(2.0 * rate.value));
                    let then = if line.subject == KERNEL { units::rate(ONE_ARRAY_THEN) } else { "-".into() };
                    vec![line.subject.clone(), rate, then]
                });
                let header = &["semaphores", "operations/s", "2010"];
                table(format!("Spraul 2010: one array, {}", cell.label), header, rows.collect(), SPRAUL)
            }
            _ => None,
        });
    }
    tables
}

const HEADER: &[&str] =
    &["mode", "cycles", "of a worker", "cycles/s", "by sysv", "by futex", "2010", "calls", "CPU"];

const TODAY: &[&str] = &[
    "cycles: posts that arrived in a run, and of the workers with fewest and most. calls of the poster,",
    "CPU: for a post. 2010: by futex, before his patch and with it. It gave each semaphore a lock and a",
    "list; the kernel has both since 2013, so what he was twice as fast as cannot be run any more. His",
    "85 % of system time in the IPC lock, 15 % with the patch, were perf's on a large NUMA machine, and",
    "10 to 15 % more came from a later patch: there is no perf here, and no such kernel.",
];

const SPRAUL: &[&str] =
    &["His was a Phenom of 4 cores at 2 GHz. A turn of a thread is two operations, -1 and +1."];

fn row(
    line: &Line,
    kernel: Option<&Line>,
    futex: Option<&Line>,
    (seconds, workers): (f64, u32),
) -> Vec<String> {
    let value = |figure: &str| line.measured(figure).map(|measured| measured.value);
    let text = |value: Option<f64>, text: fn(f64) -> String| value.map_or("-".into(), text);
    let by = |other: Option<&Line>| match other {
        Some(other) if other.subject == line.subject => "1".into(),
        other => units::ratio(other.and_then(|other| line.ratio(other, "rate"))),
    };
    let cycles = value("rate").map(|rate| rate * seconds);
    let of_worker = |figure: &str| {
        cycles
            .zip(value(figure))
            .map_or("-".into(), |(all, part)| units::rate(all / f64::from(workers) * part))
    };
    let (before, after) = BY_FUTEX_THEN;
    let then = match line.subject.as_str() {
        KERNEL => format!("{before} -> {after}"),
        FUTEX => "1".into(),
        _ => "-".into(),
    };
    vec![
        line.subject.clone(),
        text(cycles, units::rate),
        format!("{}..{}", of_worker("least"), of_worker("most")),
        text(value("rate"), units::rate),
        by(kernel),
        by(futex),
        then,
        text(value("calls"), units::digits),
        text(value("cpu"), units::time),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_line_and_2010_stands_beside_it() {
        let wish = Wish { subjects: Some(vec![FUTEX.into()]), ..Wish::default() };
        let jobs = wakes(&wish, Workers::Threads(8), 4, &ORDERS[..1]);
        let mut record = crate::report::fixture::record(3, |_, _, _, _| 1.0);
        record.window_ms = 2000;
        record.cells = jobs.into_iter().chain(one_array(&Wish::default())).map(|job| job.cell).collect();
        let line = |cell, subject: &str, rate: f64| Line {
            cell,
            subject: subject.into(),
            rounds: [("rate", rate), ("least", 0.5), ("most", 1.25), ("calls", 0.25), ("cpu", 3e3)]
                .map(|(name, value)| (name.to_owned(), vec![Some(value); 3]))
                .into(),
        };
        record.lines = vec![line(0, KERNEL, 4e5), line(0, FUTEX, 2e5), line(1, KERNEL, 1e6)];
        let tables = tables(&record);
        assert_eq!(tables[0].title, "Mason 2010: 8 threads, up to 4 posted to at a time, fifo");
        let line = |row: &[String]| row.join(" | ");
        assert_eq!(
            line(&tables[0].rows[0]),
            "sysv | 800k | 50.0k..125k | 400k | 1 | 2.00 [2.00 2.00] | 1 -> 2 | 0.250 | 3.00us"
        );
        assert!(line(&tables[0].rows[1]).contains(" | 0.50 [0.50 0.50] | 1 | 1 | "));
        assert_eq!(tables[1].rows, [["sysv", "2.00M", "2.00M"]]);
        assert!(tables.iter().all(|table| table.rows.iter().all(|row| row.len() == table.header.len())));
    }

    #[test]
    fn what_is_no_mode_or_order_is_refused() {
        assert!(modes("sysv,sem_t").unwrap_err().to_string().starts_with("'sem_t' is nothing to wait for; "));
        assert_eq!(modes("sysv,robust-semarray").unwrap().0.len(), 2);
        let error = orders("fifo,last").unwrap_err().to_string();
        assert_eq!(error, "'last' is no order; allowed: fifo, lifo, random");
        let asked =
            Arguments::try_parse_from(["sembench", "-t", "24", "-w", "16", "-r", "0.5", "-o", "futex"])
                .unwrap();
        assert_eq!((asked.threads, asked.wakes, asked.run_time.as_millis()), (Some(24), 16, 500));
    }
}
