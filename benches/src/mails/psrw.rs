//! `psrw`: the test module of Desnoyers' mail of 2008. Threads of each class read and write a
//! hundred variables under one lock; reported is how long it took each to lock and to unlock, and
//! for how long interrupts were off.

use super::{Locks, MailTable, Program, text};
use crate::engine::cell::{Cell, Job};
use crate::engine::options;
use crate::engine::plan::Order;
use crate::engine::record::{Line, Record};
use crate::report::units;
use crate::run::pinning::Pin;
use crate::subjects::rwlocks::{Entry, Rank};
use crate::workloads::Scenario;
use crate::workloads::readers::{Module, Run, Test};
use anyhow::{Context, Result};
use clap::Args;
use std::collections::BTreeSet;
use std::time::Duration;

/// The name of its records, which is that of his module.
pub const ROW: &str = "test-psrwlock";

/// What runs when the command line names no locks: the lock of his mail and the one that he
/// compared it with, and both with signals blocked in place of interrupts.
pub const SUBJECTS: [&str; 4] = ["psrw", "std-rw", "psrw-timed", "std-rw-masked"];

/// His tests, by their names in the file of his figures.
const TESTS: [(&str, &str, Test); 7] = [
    ("writer", "Single writer test, no contention", Test::Writer),
    ("try-writer", "Single trylock writer test, no contention", Test::TryWriter),
    ("bulk", "Single preemptable reader test, no contention", Test::Reader(Rank::Bulk)),
    ("urgent", "Single non-preemptable reader test, no contention", Test::Reader(Rank::Urgent)),
    ("readers", "Multiple readers test, no contention", Test::Readers),
    ("contention", "High contention test", Test::Contention),
    (INTERRUPTS, "High contention test, interrupts", Test::Contention),
];
const INTERRUPTS: &str = "interrupts";

/// Measures reader-writer locks as Mathieu Desnoyers did in his mail of 2008.
///
/// Writers and readers of each class lock and unlock. Reported is how long that took, for each
/// thread: [min, avg, max] as in his mail, whose figures stand beside them.
#[derive(Args, Debug)]
pub struct Arguments {
    /// How long a test of each lock lasts, in seconds; contention six times as long. His: 10, 60
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = options::seconds)]
    seconds: Duration,
    #[command(flatten)]
    module: Module,
    #[command(flatten)]
    locks: Locks,
}

impl Program for Arguments {
    const NAME: &'static str = "psrw";

    fn rounds(option: clap::Arg) -> clap::Arg {
        option.default_value("1")
    }

    fn order(&self, rounds: u32) -> Result<Order> {
        let subjects = self.locks.or(&SUBJECTS);
        subjects.iter().try_for_each(|name| Entry::find(name).map(drop)).context("--locks")?;
        let jobs = jobs(self.module, &subjects);
        let window_ms = (self.seconds.as_millis() as u64).max(1);
        Ok(Order::new(ROW, jobs, window_ms, rounds, Pin::Scatter))
    }

    fn shown(&self, record: &Record) -> String {
        text(tables(record), sentences(record))
    }
}

/// What his mail says, said of today.
fn sentences(record: &Record) -> Vec<String> {
    let all = |test: &str, lock: &str, role: &str, figure: &str| {
        let test = TESTS.into_iter().find(|known| known.0 == test)?;
        let line = record.line(record.cell(test.1, "")?, lock)?;
        let names = line.rounds.keys().filter(|name| name.starts_with(role) && name.ends_with(figure));
        let known: Vec<f64> = names.filter_map(|name| Some(line.measured(name)?.value)).collect();
        (!known.is_empty()).then_some(known)
    };
    let writes = |lock| Some(all("contention", lock, "writer/", "/rate")?.iter().sum::<f64>());
    let held_off = |lock| all(INTERRUPTS, lock, "", "/held-off-max")?.into_iter().reduce(f64::max);
    let writes = writes("psrw").zip(writes("std-rw")).map(|(mine, other)| {
        let ratio = units::fixed(mine / other.max(1e-9));
        format!("High contention: psrw does {ratio} of std-rw's writes; in 2008 4.68.\n")
    });
    let held_off = held_off("psrw-timed").zip(held_off("std-rw-masked")).map(|(mine, other)| {
        let [mine, other] = [mine, other].map(units::time);
        format!(
            "Signals are held off for {mine} at most by psrw, for {other} around std-rw; \
             in 2008 7.09us and 2.90ms.\n"
        )
    });
    writes.into_iter().chain(held_off).collect()
}

/// The jobs of all tests. Locks with signals blocked run where he shows interrupts.
pub fn jobs(module: Module, subjects: &[String]) -> Vec<Job> {
    let job = |(name, title, test): (&str, &str, Test)| {
        let handler_every_us = if name == INTERRUPTS { module.handler_every_us } else { 0 };
        let run = Run { test, module: Module { handler_every_us, by_thread: true, ..module } };
        let shown = matches!(name, "writer" | "try-writer" | INTERRUPTS);
        let is_in = |lock: &Entry| run.is_for(lock) && (shown || !lock.timed_mask);
        let subjects = subjects.iter().filter(|name| Entry::find(name).is_ok_and(is_in)).cloned().collect();
        let (section, scenario) = (title.into(), Scenario::Readers(run));
        Job { cell: Cell { section, label: String::new(), x: None, scenario }, subjects }
    };
    let wanted = |job: &Job| job.cell.scenario.workers() > 0 && !job.subjects.is_empty();
    let tests = TESTS.into_iter().filter(|test| test.0 != INTERRUPTS || module.handler_every_us > 0);
    tests.map(job).filter(wanted).collect()
}

/// A row of his tables.
struct Then {
    test: &'static str,
    lock: &'static str,
    who: &'static str,
    delay: &'static str,
    /// How often, and nanoseconds.
    figures: [Option<f64>; 4],
}

/// All of them; the file was checked by the test below.
fn rows() -> impl Iterator<Item = Then> {
    /// Nanoseconds a cycle of his Xeon.
    const SCALE: [f64; 4] = [1.0, 0.5, 0.5, 0.5];
    let lines = include_str!("desnoyers-2008.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let fields: Vec<&str> = line.split([' ', ',']).collect();
        let [test, lock, who, delay, ref figures @ ..] = fields[..] else { panic!("{line}") };
        let number = |at: usize| Some(SCALE[at] * figures[at].parse::<f64>().ok()?);
        Then { test, lock, who, delay, figures: [0, 1, 2, 3].map(number) }
    })
}

/// Of a delay: its name, the name of its figures, and that of its count.
const DELAYS: [(&str, &str, &str); 5] = [
    ("lock", "wait", "iterations"),
    ("unlock", "unlock", "iterations"),
    ("masked", "masked", "masked-times"),
    ("held off", "held-off", "masked-times"),
    ("clock", "clock", "iterations"),
];

/// His tables, a line for each thread, delay and lock, beside today's. Behind them come his rows
/// that no thread of today has.
pub fn tables(record: &Record) -> Vec<MailTable> {
    let table = |(at, cell): (usize, &Cell)| {
        let (name, title, _) = TESTS.into_iter().find(|test| test.1 == cell.section)?;
        let his: Vec<Then> = rows().filter(|then| then.test == name).collect();
        let (mut lines, mut found) = (Vec::new(), BTreeSet::new());
        for line in record.lines.iter().filter(|line| line.cell == at) {
            of_lock(line, &his, &mut lines, &mut found);
        }
        let left = his.iter().enumerate().filter(|(at, _)| !found.contains(at));
        lines.extend(left.map(|(_, then)| {
            let lock = if then.lock == "wbias" { "(psrw)" } else { "(peers)" };
            cells(format!("{} {}", then.who, then.delay), lock, [None; 4], Some(then))
        }));
        let today = if name == INTERRUPTS { INTERRUPTED } else { TODAY };
        let title = format!("Desnoyers 2008: {title}");
        Some(MailTable::new(title, HEADER, lines, today))
    };
    record.cells.iter().enumerate().filter_map(table).collect()
}

const HEADER: [&str; 10] = ["who, delay", "lock", "times", "min", "avg", "max", "2008", "min", "avg", "max"];

const TODAY: &[&str] = &[
    "2008: 8 CPUs of 2.0 GHz, in the kernel; his lock (wbias) beside psrw, the kernel's beside peers.",
    "Today threads of a process, dealt to its CPUs. As then the clock's own part is subtracted.",
    "bulk: preemptable readers, which his rwlock could not have. urgent: non-preemptable ones.",
    "0: less than the clock's own part. batches: lock and unlock by themselves, without clock reads.",
    "masked: signals blocked, for interrupts off. Softirqs and preemption no program can switch off.",
];
const INTERRUPTED: &[&str] = &[
    "handler: readers in signal handlers, of a timer of each writer and reader, in place of interrupts.",
    "masked: signals blocked, for interrupts off; 0: as above. held off: without the time for which the",
    "thread was ready and had no CPU.",
    "Peers block signals from lock to unlock, as an rwlock had to. irqsoff: his tracer, of other code.",
    "Softirqs and preemption no program can switch off. He had more CPUs than there are threads.",
];

/// The lines of a lock in a test. Notes which of his rows stand beside them.
fn of_lock(line: &Line, his: &[Then], lines: &mut Vec<Vec<String>>, found: &mut BTreeSet<usize>) {
    let Ok(entry) = Entry::find(&line.subject) else { return };
    let lock = if entry.family { "wbias" } else { "rwlock" };
    let figure = |name: &str| line.measured(name).map(|measured| measured.value);
    let threads: BTreeSet<&str> =
        line.rounds.keys().filter_map(|name| Some(name.rsplit_once('/')?.0)).collect();
    for who in threads {
        // What times its mask is slower for that, and is here to show the mask.
        let shown = if entry.timed_mask && !who.starts_with("handler") { &DELAYS[2..] } else { &DELAYS[..] };
        for (delay, name, count) in shown {
            let of = |name: &str| figure(&format!("{who}/{name}"));
            let [min, mean, max] = ["min", "mean", "max"].map(|kind| of(&format!("{name}-{kind}")));
            if mean.is_none() {
                continue;
            }
            let is_his = |then: &Then| then.who == who && then.delay == *delay && then.lock == lock;
            let at = his.iter().position(is_his);
            found.extend(at);
            let ours = [of(count), min, mean, max];
            lines.push(cells(format!("{who} {delay}"), &line.subject, ours, at.map(|at| &his[at])));
        }
    }
    let best = figure("pair");
    if best.is_some() {
        lines.push(cells("batches: pair".into(), &line.subject, [None, best, None, None], None));
    }
}

/// A line: how often and how long, today and then.
fn cells(who: String, lock: &str, ours: [Option<f64>; 4], then: Option<&Then>) -> Vec<String> {
    let text = |figures: [Option<f64>; 4]| {
        let [count, times @ ..] = figures;
        let count = count.map_or("-".into(), |n| if n < 1000.0 { format!("{n:.0}") } else { units::rate(n) });
        // Shorter than the clock's own part.
        let time = |ns: f64| if ns < 1.0 { "0".into() } else { units::time(ns) };
        [count].into_iter().chain(times.map(|ns| ns.map_or("-".into(), time)))
    };
    let then = then.map_or([None; 4], |then| then.figures);
    [who, lock.to_owned()].into_iter().chain(text(ours)).chain(text(then)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_his_stands_there_once() {
        let keys: BTreeSet<_> = rows().map(|then| (then.test, then.lock, then.who, then.delay)).collect();
        assert_eq!((keys.len(), rows().count()), (101, 101));
        assert!(rows().all(|then| TESTS.iter().any(|test| test.0 == then.test)));
        let is_slow = |then: &Then| (then.test, then.lock, then.who) == ("contention", "rwlock", "writer/0");
        let figures = rows().find(is_slow).unwrap().figures;
        assert_eq!(figures, [222_797.0, 63.5, 168_305.5, 2_355_183.5].map(Some));
        // What is not there is a dash.
        let text = include_str!("desnoyers-2008.txt").lines().filter(|line| !line.starts_with('#'));
        let dashes = text.flat_map(|line| line.split([' ', ','])).filter(|field| *field == "-").count();
        assert_eq!(rows().flat_map(|then| then.figures).filter(Option::is_none).count(), dashes);
    }

    /// In a record that has each thread and delay of his, each row of his that a program can have
    /// stands beside one of today, and no table is wider than a page.
    #[test]
    fn every_row_of_his_stands_beside_one_of_today() {
        let module = Module { handler_every_us: 100, ..Module::DEFAULT };
        let jobs = jobs(module, &SUBJECTS.map(String::from));
        assert_eq!(jobs.iter().map(|job| job.subjects.len()).collect::<Vec<_>>(), [4, 4, 2, 2, 2, 2, 2]);
        let mut record = crate::report::fixture::record(1, |_, _, _, _| 1.0);
        record.lines.clear();
        for (cell, job) in jobs.iter().enumerate() {
            let (name, _, _) = TESTS.into_iter().find(|test| test.1 == job.cell.section).unwrap();
            for subject in &job.subjects {
                let of = |then: Then| {
                    let (_, figure, count) = DELAYS.into_iter().find(|delay| delay.0 == then.delay)?;
                    let kinds = ["min", "mean", "max"].map(|kind| format!("{}/{figure}-{kind}", then.who));
                    Some(kinds.into_iter().chain([format!("{}/{count}", then.who)]))
                };
                let names = rows().filter(|then| then.test == name).filter_map(of).flatten();
                let rounds = names.map(|name| (name, vec![Some(1_234_000.0)])).collect();
                record.lines.push(Line { cell, subject: subject.clone(), rounds });
            }
        }
        record.cells = jobs.into_iter().map(|job| job.cell).collect();
        let (mut beside, mut alone) = (0, Vec::new());
        for table in tables(&record) {
            for line in table.text().lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
            for row in &table.table.rows {
                match row[1].starts_with('(') {
                    true => alone.push(row[0].clone()),
                    false => beside += usize::from(row[9] != "-"),
                }
            }
        }
        assert!(alone.iter().all(|who| who.ends_with(" off")), "{alone:?}");
        // The clock stands beside the two that mask as well; and in this record, masks beside psrw.
        assert_eq!(beside + alone.len(), rows().count() + 2 + 2);
    }
}
