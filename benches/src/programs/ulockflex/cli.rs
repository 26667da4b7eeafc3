//! The command line, turned into a plan, or into one line that says what is wrong and what is
//! allowed.

use super::plan::{Cell, MIN_RUNS, Plan, WIDTH};
use super::select::Selection;
use super::table::{COLUMN_LEGEND, lock_legend};
use crate::programs::options::{self, List};
use crate::run::busy_work;
use crate::run::pinning::Pin;
use crate::subjects::locks::{self, Entry};
use crate::workloads::trial::Workers;
use anyhow::{Result, bail};
use clap::Parser;
use std::time::Duration;

/// Franke's numbers of children but the last, 1000, which is had on request.
const CHILDREN: [u32; 5] = [1, 2, 3, 4, 100];
/// His workloads (r, x): mean times outside and inside, in microseconds.
const WORKLOADS_US: [(u64, u64); 4] = [(0, 0), (0, 10), (7, 3), (9, 1)];

const ABOUT: &str = "\
Measures locks as Hubertus Franke's ulockflex of 2002 did: children run
    outside; lock; inside; unlock
in a loop; reported are their loops per second, how evenly they share them, and how often the lock was contended.";

/// Measures locks as Hubertus Franke's ulockflex of 2002 did.
#[derive(Debug, Parser)]
#[command(name = "ulockflex", version, long_about = ABOUT, after_long_help = after_help())]
struct Arguments {
    /// Numbers of children, which are threads; A..B doubles from A until B [default: 1,2,3,4,100]
    #[arg(long, value_name = "LIST", value_parser = options::counts)]
    threads: Option<List<u32>>,
    /// The same, but the children are processes and the locks lie in a file that all of them map
    #[arg(long, value_name = "LIST", value_parser = options::counts)]
    processes: Option<List<u32>>,
    /// The locks to measure [default: all]
    #[arg(long, value_name = "LIST", value_parser = options::lock_names)]
    locks: Option<List<&'static Entry>>,
    /// Number of lock instances; child i uses lock i modulo N
    #[arg(long, value_name = "N", value_parser = lock_count, default_value = "1")]
    lock_count: u32,
    /// Length of each run, in seconds
    #[arg(long, value_name = "S", value_parser = options::seconds, default_value = "0.1")]
    seconds: Duration,
    /// Mean time inside the lock (1us, 250ns, 0), drawn uniformly from half to one and a half times
    /// this; with --non-hold, where either may be left out and is then 0 [default: Franke's four
    /// workloads]
    #[arg(long, value_name = "TIME", value_parser = options::duration)]
    hold: Option<Duration>,
    /// Mean time outside the lock, likewise
    #[arg(long, value_name = "TIME", value_parser = options::duration)]
    non_hold: Option<Duration>,
    /// How long locks spin that have a patience as a parameter (0, 3us); the others run as they are
    #[arg(long, value_name = "LIST", value_parser = options::durations)]
    patience: Option<List<Duration>>,
    /// Percentages of shared acquisitions, for locks that have a shared mode
    #[arg(long, value_name = "LIST", value_parser = options::percentages, default_value = "0")]
    read_share: List<u8>,
    /// Counted runs after which a row ends although its throughput is not known to 5 %
    #[arg(long, value_name = "N", value_parser = max_runs, default_value = "7")]
    max_runs: usize,
    /// Where children run: none (wherever the scheduler likes), compact, scatter or node
    #[arg(long, value_name = "HOW", default_value_t = Pin::default())]
    pin: Pin,
}

/// What the command line asks for.
#[derive(Debug)]
pub struct Order {
    /// What to measure.
    pub plan: Plan,
    /// What was left out because the user did not ask for it by name, one line each.
    pub notes: Vec<String>,
}

/// Parses the command line, or ends the program: help with 0, an error with 2.
pub fn parse() -> Order {
    let arguments = options::parse::<Arguments>();
    order(arguments, busy_work::calibrate()).unwrap_or_else(|error| options::refuse(&error))
}

fn order(arguments: Arguments, iterations_per_us: f64) -> Result<Order> {
    for (option, mean) in [("--hold", arguments.hold), ("--non-hold", arguments.non_hold)] {
        options::measurable(option, mean.unwrap_or_default(), arguments.seconds, iterations_per_us)?;
    }
    let workloads: Vec<(u64, u64)> = match (arguments.non_hold, arguments.hold) {
        (None, None) => WORKLOADS_US.iter().map(|(r, x)| (r * 1000, x * 1000)).collect(),
        (r, x) => vec![(nanoseconds(r.unwrap_or_default()), nanoseconds(x.unwrap_or_default()))],
    };
    let children: Vec<Workers> = match (arguments.threads, arguments.processes) {
        (Some(_), Some(_)) => bail!("--threads and --processes exclude each other; allowed: one of them"),
        (None, Some(List(counts))) => counts.into_iter().map(Workers::Processes).collect(),
        (Some(List(counts)), None) => counts.into_iter().map(Workers::Threads).collect(),
        (None, None) => CHILDREN.map(Workers::Threads).to_vec(),
    };
    let cell = |&workers: &Workers| {
        workloads.iter().map(move |&(non_hold_ns, hold_ns)| Cell { workers, non_hold_ns, hold_ns })
    };
    let cells: Vec<Cell> = children.iter().flat_map(cell).collect();

    let mut notes = Vec::new();
    let processes = matches!(children[0], Workers::Processes(_));
    let mut selection = match arguments.locks {
        Some(List(named)) => Selection::named(locks::Entry::all(), named, processes)?,
        None => Selection::usual(locks::Entry::all(), processes, &mut notes),
    };
    if let Some(List(patience)) = arguments.patience {
        selection = selection.with_patience(&patience, &mut notes)?;
    }
    let variants = selection.with_read_shares(&arguments.read_share.0, &mut notes)?;

    let window_ms = arguments.seconds.as_millis() as u64;
    let plan = Plan {
        cells,
        variants,
        lock_count: arguments.lock_count,
        warmup_ms: (window_ms / 5).clamp(5, 100),
        window_ms,
        min_runs: MIN_RUNS.min(arguments.max_runs),
        max_runs: arguments.max_runs,
        width: WIDTH,
        pin: arguments.pin,
        iterations_per_us,
        seed: 2002,
    };
    Ok(Order { plan, notes })
}

fn lock_count(text: &str) -> Result<u32> {
    number(text, "locks", 1, 10_000)
}

fn max_runs(text: &str) -> Result<usize> {
    number(text, "runs", 2, 1000).map(|runs| runs as usize)
}

fn number(text: &str, what: &str, least: u32, most: u32) -> Result<u32> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => bail!("'{text}' is not a possible number of {what}; allowed: {least} to {most}"),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn after_help() -> String {
    format!(
        "Columns:\n{COLUMN_LEGEND}\n\nLocks:\n{}\n\
         Exit codes: 0 measured, 1 a run failed, 2 a wrong option, 128 + N ended by signal N.",
        lock_legend(locks::Entry::all())
    )
}
