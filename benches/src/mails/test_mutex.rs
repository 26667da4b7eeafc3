//! `test-mutex`: the program of Molnar's mail of 2005. Tasks create, unlink and close files of
//! their own in one directory.
//!
//! His files were in /tmp, and the lock was the kernel's, of the directory. Here the directory is a
//! tree in memory under the lock that is measured. He compared a kernel with semaphores and one
//! with mutexes: the ratios are to the first lock, a semaphore in the order of arrival.

use super::{Case, Column, Locks, MailTable, Program, table, text, text_of};
use crate::engine::cell::{Cell, Job};
use crate::engine::options;
use crate::engine::plan::Order;
use crate::engine::record::{Line, Record};
use crate::report::units;
use crate::run::pinning::Pin;
use crate::workloads::Scenario;
use crate::workloads::files::Files;
use anyhow::Result;
use clap::Args;
use std::time::Duration;

/// The name of its records.
pub const ROW: &str = "test-mutex";

/// What runs when the command line names no locks; the first plays the kernel's semaphore.
pub const SUBJECTS: [&str; 8] =
    ["semaphore", "throughput", "unfair", "calock", "fair", "std", "parking_lot", "pthread"];

/// What he measured, of 16 tasks: machine, then of semaphores and of mutexes each loops a second
/// and use of the CPUs in per cent.
const FIRST: [(&str, [(f64, f64); 2]); 2] = [
    ("8-way x86", [(34_713.0, 63.0), (84_153.0, 22.0)]),
    ("2-way P4 with hyper-threading", [(127_659.0, 100.0), (181_082.0, 34.0)]),
];

/// His second run on the 8-way, as an answer to whether mutexes are fair: operations a second, and
/// cost and deviance of an operation in microseconds.
const SECOND: [(f64, f64, f64); 2] = [(34_381.0, 512.13, 573.10), (85_130.0, 206.59, 319.08)];

/// Measures locks as Ingo Molnar's test-mutex of 2005 did: tasks create, unlink and close files of
/// their own in one directory.
///
/// His command was `test-mutex V 16 10`. Reported are operations a second, use of the CPUs, and
/// cost and deviance of an operation, as he printed them, and the ratios to the first lock.
#[derive(Args, Debug)]
pub struct Arguments {
    /// V: files in a directory; L: tasks add one to a number under the lock
    #[arg(value_name = "TEST", default_value = "V", value_parser = ["V", "L"])]
    test: String,
    /// Tasks that want the lock
    #[arg(value_name = "TASKS", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tasks: u32,
    /// Length of a trial, in seconds
    #[arg(value_name = "SECONDS", default_value = "0.5", value_parser = options::seconds)]
    seconds: Duration,
    #[command(flatten)]
    locks: Locks,
}

impl Program for Arguments {
    const NAME: &'static str = "test-mutex";

    fn order(&self, rounds: u32) -> Result<Order> {
        let window_ms = (self.seconds.as_millis() as u64).max(1);
        let jobs = jobs(self.tasks, self.test == "V", &self.locks.or(&SUBJECTS));
        Ok(Order::new(ROW, jobs, window_ms, rounds, Pin::None))
    }

    fn shown(&self, record: &Record) -> String {
        let own: String = record.lines.iter().map(|line| own_lines(record, line) + "\n").collect();
        own + &text(tables(record), sentence(record))
    }
}

/// What his mail says, said of today.
fn sentence(record: &Record) -> Option<String> {
    let ratio = |figure| record.ratio((0, SUBJECTS[1]), (0, SUBJECTS[0]), figure);
    let [rate, busy] = [ratio("rate")?, ratio("busy")?].map(|ratio| units::ratio(Some(ratio)));
    let tasks = &record.cells.first()?.label;
    Some(format!(
        "With {tasks} the mutex does {rate} times the semaphore's operations at {busy} of its CPU; \
         in 2005 2.42 and 0.35.\n"
    ))
}

/// `V` and `tasks` tasks; without `V` they add one to a number under the lock.
pub fn jobs(tasks: u32, files: bool, subjects: &[String]) -> Vec<Job> {
    let section = if files { "V: files" } else { "L: lock and unlock" };
    let cell = Cell {
        section: section.into(),
        label: format!("{tasks} tasks"),
        x: Some(f64::from(tasks)),
        scenario: Scenario::Files(Files { tasks, files }),
    };
    vec![Job { cell, subjects: subjects.to_vec() }]
}

/// What his program prints, as it prints it, of a subject.
pub fn own_lines(record: &Record, line: &Line) -> String {
    let Scenario::Files(run) = record.cells[line.cell].scenario else { return String::new() };
    let known = |name: &str, text: fn(f64) -> String| {
        text_of(line.measured(name).map(|measured| measured.value), text)
    };
    format!(
        "{}\n{} CPUs, running {} parallel test-tasks.\nchecking {} performance.\navg ops/sec: {}\n\
         CPU utilization: {}\naverage cost per op: {}\naverage deviance per op: {}\n",
        line.subject,
        record.machine.cpus(),
        run.tasks,
        if run.files { "VFS" } else { "lock" },
        known("rate", |rate| format!("{rate:.0}")),
        known("busy", |busy| format!("{:.0}%", 100.0 * busy)),
        known("op-cost", |ns| format!("{:.2} usecs", ns / 1e3)),
        known("op-deviance", |ns| format!("{:.2} usecs", ns / 1e3)),
    )
}

/// His two tables, beside today's.
pub fn tables(record: &Record) -> Vec<MailTable> {
    let of = |(at, cell): (usize, &Cell)| {
        let title = format!("Molnar 2005, test-mutex {}, {}", cell.section, cell.label);
        table(record, at, title, COLUMNS, TODAY)
    };
    record.cells.iter().enumerate().filter_map(of).collect()
}

const COLUMNS: &[Column] = &[
    ("lock", |case| case.line.subject.clone()),
    ("ops/s", |case| case.value("rate")),
    ("by first", |case| case.ratio("rate")),
    ("2005", |case| first(case, |(rate, _)| rate)),
    ("CPU", |case| case.value("busy")),
    ("by first", |case| case.ratio("busy")),
    ("2005", |case| first(case, |(_, busy)| busy)),
    ("ops/CPU", |case| {
        let ratio = |figure| case.line.ratio(case.first, figure).map(|ratio| ratio.value);
        text_of(ratio("rate").zip(ratio("busy")).map(|(rate, busy)| rate / busy), units::digits)
    }),
    ("2005", |case| first(case, |(rate, busy)| rate / busy)),
    ("cost/op", |case| case.value("op-cost")),
    ("by first", |case| case.ratio("op-cost")),
    ("2005", |case| second(case, |(_, cost, _)| cost)),
    ("dev/op", |case| case.value("op-deviance")),
    ("by first", |case| case.ratio("op-deviance")),
    ("2005", |case| second(case, |(_, _, deviance)| deviance)),
];

const TODAY: &[&str] = &[
    "ops/s: operations of all tasks; CPU: use of all CPUs; ops/CPU: the ratio of ops/s by that of CPU;",
    "cost/op, dev/op: the mean time of an operation, and the mean change from one to the next.",
    "2005: files; ratios of the kernel with mutexes to that with semaphores, on 8 CPUs, and on 2 with",
    "hyper-threading. Cost and deviance were given for 8 CPUs only. Then the directory was /tmp and its",
    "lock the kernel's; today it is a tree in memory under the lock, so an operation acquires it twice.",
];

/// A ratio of his mutexes to his semaphores, on both machines. They stand beside the mutex that is
/// the default here.
fn first(case: &Case<'_>, of: fn((f64, f64)) -> f64) -> String {
    let ratios = FIRST.map(|(_, [semaphore, mutex])| units::digits(of(mutex) / of(semaphore)));
    if case.line.subject == SUBJECTS[1] { ratios.join(", ") } else { "-".into() }
}

fn second(case: &Case<'_>, of: fn((f64, f64, f64)) -> f64) -> String {
    let ratio = of(SECOND[1]) / of(SECOND[0]);
    text_of((case.line.subject == SUBJECTS[1]).then_some(ratio), units::digits)
}
