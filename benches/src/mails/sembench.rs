//! `sembench`: the program of Mason's mail of 2010. Many threads or processes wait, each for a
//! semaphore of its own, and one posts to many at a time; counted are the cycles of post and wait.

use super::{Case, Column, MailTable, Program, table, text, text_of};
use crate::engine::cell::Cell;
use crate::engine::options::{self, List};
use crate::engine::plan::Order as Plan;
use crate::engine::record::Record;
use crate::report::units;
use crate::rows::Wish;
use crate::rows::sembench::{ORDERS, one_array, wakes};
use crate::run::pinning::Pin;
use crate::subjects::semaphores::{Entry, FUTEX, KERNEL};
use crate::workloads::semaphores::{Order, Run};
use crate::workloads::{Scenario, Workers};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::time::Duration;

/// The row that has the cells of this program, too.
pub const ROW: &str = "sembench";
/// The name of this program's own records.
const OWN: &str = "sembench-own";

/// Counts posts and waits of semaphores as Chris Mason's sembench of 2010 did.
///
/// Many wait, each for a semaphore of its own. One posts to those that are ready, to many at a
/// time, and each that wakes up waits again.
#[derive(Args, Debug)]
pub struct Arguments {
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

impl Program for Arguments {
    const NAME: &'static str = "sembench";

    fn order(&self, rounds: u32) -> Result<Plan> {
        let wish = Wish { subjects: self.operations.as_ref().map(|list| list.0.clone()), ..Wish::default() };
        let n = self.threads.unwrap_or(if self.processes { 64 } else { 2048 });
        ensure!(!self.processes || n <= 250, "{n} processes; allowed: 1 to 250, as in -t 64");
        let workers = if self.processes { Workers::Processes(n) } else { Workers::Threads(n) };
        let mut jobs = wakes(&wish, workers, self.wakes, &self.order.0);
        jobs.extend(one_array(&wish));
        Ok(Plan::new(OWN, jobs, self.run_time.as_millis() as u64, rounds, Pin::Scatter))
    }

    fn shown(&self, record: &Record) -> String {
        text(tables(record), None)
    }
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
    let of = |(at, cell): (usize, &Cell)| match cell.scenario {
        Scenario::Semaphores(Run::Wakes { .. }) => {
            table(record, at, format!("Mason 2010: {}, {}", cell.section, cell.label), COLUMNS, TODAY)
        }
        Scenario::Semaphores(Run::Own { threads: 4, poster: false }) => {
            table(record, at, format!("Spraul 2010: one array, {}", cell.label), ONE_ARRAY, SPRAUL)
        }
        _ => None,
    };
    record.cells.iter().enumerate().filter_map(of).collect()
}

const COLUMNS: &[Column] = &[
    ("mode", |case| case.line.subject.clone()),
    ("cycles", |case| text_of(cycles(case), units::rate)),
    ("of a worker", |case| format!("{}..{}", of_worker(case, "least"), of_worker(case, "most"))),
    ("cycles/s", |case| case.value("rate")),
    ("by sysv", |case| by(case, KERNEL)),
    ("by futex", |case| by(case, FUTEX)),
    ("2010", |case| match case.line.subject.as_str() {
        KERNEL => format!("{} -> {}", BY_FUTEX_THEN.0, BY_FUTEX_THEN.1),
        FUTEX => "1".into(),
        _ => "-".into(),
    }),
    ("calls", |case| case.value("calls")),
    ("CPU", |case| case.value("cpu")),
];

const TODAY: &[&str] = &[
    "cycles: posts that arrived in a run, and of the workers with fewest and most. calls of the poster,",
    "CPU: for a post. 2010: by futex, before his patch and with it. It gave each semaphore a lock and a",
    "list; the kernel has both since 2013, so what he was twice as fast as cannot be run any more. His",
    "85 % of system time in the IPC lock, 15 % with the patch, were perf's on a large NUMA machine, and",
    "10 to 15 % more came from a later patch: there is no perf here, and no such kernel.",
];

const SPRAUL: &[&str] =
    &["His was a Phenom of 4 cores at 2 GHz. A turn of a thread is two operations, -1 and +1."];

const ONE_ARRAY: &[Column] = &[
    ("semaphores", |case| case.line.subject.clone()),
    ("operations/s", |case| text_of(case.number("rate").map(|turns| 2.0 * turns), units::rate)),
    ("2010", |case| text_of((case.line.subject == KERNEL).then_some(ONE_ARRAY_THEN), units::rate)),
];

/// All posts of a run.
fn cycles(case: &Case<'_>) -> Option<f64> {
    Some(case.number("rate")? * case.record.window_ms as f64 / 1e3)
}

/// Those of a worker, of which there is the share of a mean worker.
fn of_worker(case: &Case<'_>, figure: &str) -> String {
    let Scenario::Semaphores(Run::Wakes { workers, .. }) = case.scenario() else { return "-".into() };
    let both = cycles(case).zip(case.number(figure));
    text_of(both.map(|(all, share)| all / f64::from(workers.count()) * share), units::rate)
}

fn by(case: &Case<'_>, other: &str) -> String {
    match case.record.line(case.line.cell, other) {
        Some(other) if other.subject == case.line.subject => "1".into(),
        other => units::ratio(other.and_then(|other| case.line.ratio(other, "rate"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::engine::record::Line;
    use crate::mails::CommandLine;
    use clap::Parser;

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
            line(&tables[0].table.rows[0]),
            "sysv | 800k | 50.0k..125k | 400k | 1 | 2.00 [2.00 2.00] | 1 -> 2 | 0.250 | 3.00us"
        );
        assert!(line(&tables[0].table.rows[1]).contains(" | 0.50 [0.50 0.50] | 1 | 1 | "));
        assert_eq!(tables[1].table.rows, [["sysv", "2.00M", "2.00M"]]);
    }

    #[test]
    fn what_is_no_mode_or_order_is_refused() {
        assert!(modes("sysv,sem_t").unwrap_err().to_string().starts_with("'sem_t' is nothing to wait for; "));
        assert_eq!(modes("sysv,robust-semarray").unwrap().0.len(), 2);
        let error = orders("fifo,last").unwrap_err().to_string();
        assert_eq!(error, "'last' is no order; allowed: fifo, lifo, random");
        let asked = CommandLine::<Arguments>::try_parse_from([
            "sembench", "-t", "24", "-w", "16", "-r", "0.5", "-o", "futex",
        ])
        .unwrap();
        assert_eq!(
            (asked.program.threads, asked.program.wakes, asked.program.run_time.as_millis()),
            (Some(24), 16, 500)
        );
    }
}
