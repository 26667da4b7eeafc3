//! `sembench`: the program of the seed of 2010 ([`wakes`](crate::workloads::semaphores)), over the
//! kernel's semaphores, futexes, and ours.
//!
//! Without options of its own it shows the two sizes that are promised about; with `-t`, `-w`, `-r`
//! and `-o`, as his program has them, one size of one's own.

use super::row::{self, Row};
use super::{Record, Subject, trials};
use crate::programs::harness::Program;
use crate::programs::harness::plan::Effort;
use crate::programs::options::{self, BenchOptions, List};
use crate::programs::shares;
use crate::report::{Mode, Table, distinct, units};
use crate::subjects::semaphores::{Entry, FUTEX, KERNEL, Made};
use crate::workloads::cell::Probe;
use crate::workloads::semaphores::{EACH, Order, PER_CALL, Run};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::fmt::Write;
use std::time::Duration;

/// Threads and wakes a round.
const SIZES: [(u32, u32); 2] = [(256, 200), (1000, 900)];
/// Where one of the two is not given: as in his program.
const USUAL: (u32, u32) = (2048, 256);
/// What shows that it runs.
const SMALL: (u32, u32) = (24, 16);

/// The command line.
#[derive(Parser)]
#[command(name = "sembench")]
pub struct Cli {
    #[command(flatten)]
    options: BenchOptions,
    /// Threads that wait; with -w or alone, instead of the usual sizes
    #[arg(short = 't', value_name = "N", value_parser = threads)]
    waiting: Option<u32>,
    /// Threads woken at a time
    #[arg(short = 'w', value_name = "N", value_parser = threads)]
    wakes: Option<u32>,
    /// Length of the measured window of each trial, in seconds; the same as --seconds
    #[arg(short = 'r', value_name = "S", value_parser = options::seconds, conflicts_with = "seconds")]
    run_time: Option<Duration>,
    /// What is waited for, such as sysv,futex,semarray
    #[arg(short = 'o', long = "modes", value_name = "LIST", value_parser = modes)]
    modes: Option<List<&'static Entry>>,
    /// Orders in which they are woken: fifo, lifo, random
    #[arg(long, value_name = "LIST", value_parser = orders)]
    order: Option<List<Order>>,
}

fn threads(text: &str) -> Result<u32> {
    let allowed = "allowed: 1 to 10000";
    let count =
        text.parse().ok().with_context(|| format!("'{text}' is not a number of threads; {allowed}"))?;
    ensure!((1..=10_000).contains(&count), "{count} threads are out of range; {allowed}");
    Ok(count)
}

/// What can take part.
fn takes_part(entry: &Entry) -> bool {
    Run::Wakes { threads: 1, wakes: 1, order: Order::Fifo }.admits(entry)
}

fn modes(text: &str) -> Result<List<&'static Entry>> {
    let takes_part = Entry::all().iter().filter(|entry| takes_part(entry));
    options::named(text, "mode", &takes_part.map(|entry| (entry.name, entry)).collect::<Vec<_>>())
}

fn orders(text: &str) -> Result<List<Order>> {
    options::named(text, "order", &Order::ALL.map(|order| (order.name(), order)))
}

impl AsRef<BenchOptions> for Cli {
    fn as_ref(&self) -> &BenchOptions {
        &self.options
    }
}

/// The program.
#[derive(Debug)]
pub enum Sembench {}

impl Program for Sembench {
    const NAME: &'static str = "sembench";
    const SCHEMA: &'static str = "ulocks-sembench/1";
    type Cli = Cli;
    type Subject = Subject;

    fn window(cli: &Cli) -> Option<Duration> {
        cli.run_time.or(cli.options.seconds)
    }

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (100, 400), Some(300)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (50, 150), None),
            Mode::Smoke => Effort::new(2, (1, 1), (5, 5), None),
        }
    }

    fn subjects(cli: &Cli, mode: Mode, _: u32) -> Vec<Subject> {
        let sizes = match (cli.waiting, cli.wakes, mode) {
            (None, None, Mode::Smoke) => vec![SMALL],
            (None, None, Mode::Quick) if cli.options.only.is_none() => SIZES[..1].to_vec(),
            (None, None, _) => SIZES.to_vec(),
            (threads, wakes, _) => vec![(threads.unwrap_or(USUAL.0), wakes.unwrap_or(USUAL.1))],
        };
        let orders = cli.order.as_ref().map_or(&Order::ALL[..], |orders| &orders.0);
        let of = |(threads, wakes)| orders.iter().map(move |&order| Run::Wakes { threads, wakes, order });
        let mut subjects = Subject::of(&sizes.into_iter().flat_map(of).collect::<Vec<_>>());
        if cli.order.is_none() {
            // What posts to one at a time has no order that could matter to it.
            subjects.retain(|subject| row::fifo(subject.run).is_none() || !subject.entry.one_by_one);
        }
        if let Some(modes) = &cli.modes {
            subjects.retain(|subject| modes.0.iter().any(|mode| mode.name == subject.entry.name));
        }
        subjects
    }

    fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
        trials(subjects)
    }

    fn tables(record: &Record) -> String {
        let mut out = String::new();
        for (threads, wakes) in distinct(record.rows.iter().filter_map(size)) {
            writeln!(out, "\n{threads} threads, up to {wakes} woken at a time").unwrap();
            let header = [
                "order",
                "mode",
                "posts/s",
                "by sysv",
                "by futex",
                "by fifo",
                "CPU/post",
                "calls/post",
                "COV",
            ];
            let mut table = Table::new(&[0, 1, 3, 4, 5], &header);
            let mut last = None;
            for row in record.rows.iter().filter(|row| size(row) == Some((threads, wakes))) {
                let Run::Wakes { order, .. } = row.run else { continue };
                if last.is_some_and(|last| last != order) {
                    table.gap();
                }
                last = Some(order);
                table.row(vec![
                    order.name().into(),
                    row.subject.clone(),
                    row.per_s.rate(),
                    row::ratio(row.by(KERNEL)),
                    row::ratio(row.by(FUTEX)),
                    row::ratio(row.by_fifo.as_ref()),
                    units::time(row.cpu_ns),
                    row::known(row.calls, units::digits),
                    units::digits(row.cov),
                ]);
            }
            table.print(&mut out);
        }
        writeln!(
            out,
            "\nmode        what is waited for, in arrays of {EACH}, and posted to in sets of up to {PER_CALL}:"
        )
        .unwrap();
        for entry in
            Entry::all().iter().filter(|entry| record.rows.iter().any(|row| row.subject == entry.name))
        {
            let many = if matches!(entry.made_of, Made::Kernel | Made::Ours(_)) && !entry.one_by_one {
                ", in sets"
            } else {
                ""
            };
            writeln!(out, "            {}: {}{many}", entry.name, entry.about).unwrap();
        }
        out + &record.notes(NOTES)
    }
}

fn size(row: &Row) -> Option<(u32, u32)> {
    match row.run {
        Run::Wakes { threads, wakes, .. } => Some((threads, wakes)),
        _ => None,
    }
}

const NOTES: &str = "\
posts/s     geometric mean over rounds; a|b are two modes
by          posts/s by those of another in the same round and order, or of its own in the order in which they were found;
            [95 % interval], {range} over two modes
CPU/post    CPU time of the whole process, the main thread's search for who is ready included; median over rounds
calls/post  system calls of the main thread that post or wake
COV         coefficient of variation of the threads' wake-ups in the window: 0 is fair
2010        a cycle, a post and a wait, of System V's semaphores took as long as one of futexes, and half as long with
            Mason's patch: a list and a lock for each semaphore, which has come into the kernel since";
