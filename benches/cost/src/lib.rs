//! What the locks of the family, and those they are told apart from, would cost on many CPUs:
//! predictions of the virtual machine, in a table and as JSON.
//!
//! This library is empty outside of the world of the virtual machine, where the locks are the same
//! source as everywhere. Nothing here is a measurement, and every output says so.

#![cfg(all(ulocks_vm, feature = "vm"))]

mod locks;
mod spinning;

pub use locks::{Lock, all};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use ulocks_vm_cost::{MOST_CPUS, Machine, Outcome, Placement, Run};

/// Predicts what the locks cost on many CPUs: throughput, line transfers, fairness, waits. Nothing
/// is measured.
#[derive(Debug, Parser)]
#[command(name = "ulocks-cost", version, allow_negative_numbers = true)]
pub struct Cli {
    /// Numbers of CPUs: `1,2,24`, or `1..256` for doublings
    #[arg(long, default_value = "1..64", value_parser = cpus)]
    cpus: Cpus,
    /// The locks, by name
    #[arg(long, value_delimiter = ',', default_value = "unfair,tas,ttas,ticket,mcs", value_parser = locks::named)]
    locks: Vec<Lock>,
    /// Threads, however many CPUs there are [default: one for each CPU]
    #[arg(long, value_parser = at_least(1))]
    threads: Option<usize>,
    /// Time inside the lock, in nanoseconds
    #[arg(long, default_value_t = 30.0)]
    hold: f64,
    /// Time outside the lock, in nanoseconds
    #[arg(long, default_value_t = 150.0)]
    think: f64,
    /// The share of operations that write, for locks with readers: 0.1 is one in ten
    #[arg(long, default_value_t = 0.001, value_parser = share)]
    writes: f64,
    /// Cache lines of data that a section writes, or reads if it is a reader's. Those of
    /// `semarray-own` and `semarray-two` have none
    #[arg(long, default_value_t = 1, value_parser = at_least(0))]
    lines: usize,
    /// Spread the threads over all sockets of the machine, instead of filling one after the other
    #[arg(long)]
    spread: bool,
    /// Virtual time of each run, in microseconds
    #[arg(long, default_value_t = 200.0)]
    time: f64,
    /// Virtual time before that, in which nothing is counted, in microseconds
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// A file of machine parameters, as ulocks-vm-calibrate writes them [default: a guess at a
    /// large server]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Write the predictions here too, each with its parameters, as one JSON array
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// List the locks
    #[arg(long)]
    list: bool,
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("a share is from 0 to 1".into()) }
}

/// Numbers of CPUs, ascending.
#[derive(Clone, Debug)]
struct Cpus(Vec<usize>);

/// One lock on so many CPUs.
#[derive(Serialize)]
struct Cell {
    lock: &'static str,
    /// What the machine predicts.
    #[serde(flatten)]
    outcome: Outcome,
}

/// Runs the program.
///
/// # Errors
/// If an option is wrong, or a file cannot be read or written.
pub fn run(cli: &Cli) -> Result<()> {
    if cli.list {
        all().iter().for_each(|lock| println!("{:<14} {}", lock.name, lock.about));
        return Ok(());
    }
    // Each row would be the same run.
    let same = cli.spread && cli.threads.is_some() && cli.cpus.0.len() > 1;
    ensure!(!same, "--spread takes all CPUs of the machine: give --cpus one number, or leave out --threads");
    let most = cli.cpus.0.last().copied().unwrap_or(1);
    let machine = cli.machine.as_ref().map_or_else(|| Ok(Machine::example_with(most)), Machine::load)?;
    machine.check()?;
    let has = machine.topology.total();
    ensure!(most <= has, "--cpus goes to {most}, and the machine {} has {has}", machine.name);
    // A file that cannot be written is found now.
    let create = |path| std::fs::File::create(path).with_context(|| format!("cannot write {path:?}"));
    let json = cli.json.as_ref().map(create).transpose()?;

    println!("{machine}\n");
    let mut cells = Vec::new();
    for &cpus in &cli.cpus.0 {
        let placement = if cli.spread { Placement::Spread } else { Placement::Compact };
        let run = Run {
            cpus: if cli.spread { has } else { cpus },
            placement,
            data_lines: cli.lines,
            hold_ns: cli.hold,
            think_ns: cli.think,
            time_ns: cli.time * 1_000.0,
            warm_up_ns: cli.warm_up * 1_000.0,
            ..Run::new(machine.clone(), cli.threads.unwrap_or(cpus))
        };
        for Lock { name, run: predict, .. } in &cli.locks {
            let outcome = predict(&run, cli.writes)
                .with_context(|| format!("{name} on {} CPUs came to nothing", run.cpus))?;
            cells.push(Cell { lock: name, outcome });
        }
    }
    print!("{}", text(&cells, cli.locks.len()));
    match json {
        Some(mut file) => Ok(std::io::Write::write_all(&mut file, &serde_json::to_vec_pretty(&cells)?)?),
        None => Ok(()),
    }
}

/// The tables: a row for each number of CPUs, a column for each of so many locks.
fn text(cells: &[Cell], locks: usize) -> String {
    let mut text = String::new();
    let mut table = |what: &str, any: fn(&Outcome) -> bool, show: fn(&Outcome) -> String| {
        if !cells.iter().any(|cell| any(&cell.outcome)) {
            return;
        }
        let _ = write!(text, "predicted, not measured: {what}\n{:>5} {:>7}", "cpus", "threads");
        cells[..locks].iter().for_each(|cell| _ = write!(text, " {:>18}", cell.lock));
        for row in cells.chunks(locks) {
            // Spread threads have all CPUs of the machine.
            let _ = write!(text, "\n{:>5} {:>7}", row[0].outcome.cpus, row[0].outcome.threads);
            row.iter().for_each(|cell| _ = write!(text, " {:>18}", show(&cell.outcome)));
        }
        text.push('\n');
    };
    table(
        "operations per us (line transfers per operation)",
        |_| true,
        |outcome| format!("{:.2} ({:.1})", outcome.per_us, outcome.transfers_per_operation),
    );
    table(
        "sleeps in the kernel per operation (preemptions in all)",
        |outcome| outcome.kernel.sleeps > 0,
        |outcome| {
            let sleeps = outcome.kernel.sleeps as f64 / outcome.operations.max(1) as f64;
            format!("{sleeps:.4} ({})", outcome.kernel.preemptions)
        },
    );
    table(
        "how even the shares are, from 0 to 1 (threads that got nothing)",
        |outcome| outcome.threads > 1,
        |outcome| format!("{:.3} ({})", outcome.fairness.jain, outcome.fairness.starved),
    );
    text
}

/// More than 65,536 threads or lines of data no run has.
fn at_least(least: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least..=65_536)
}

fn cpus(text: &str) -> Result<Cpus> {
    let number = |text: &str| -> Result<usize> {
        let number = text.trim().parse().with_context(|| format!("`{text}` is not a number"))?;
        ensure!((1..=MOST_CPUS).contains(&number), "{number} CPUs: from 1 to {MOST_CPUS}");
        Ok(number)
    };
    let mut list = match text.split_once("..") {
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            ensure!(first <= last, "{first}..{last} is empty");
            let doublings = std::iter::successors(Some(first), |cpus| Some(cpus * 2));
            doublings.take_while(|&cpus| cpus < last).chain([last]).collect()
        }
        None => text.split(',').map(number).collect::<Result<Vec<_>>>()?,
    };
    list.sort_unstable();
    list.dedup();
    Ok(Cpus(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_repeats_the_one_before_is_refused() {
        let spread = |more: &[&str]| {
            let words = ["ulocks-cost", "--spread", "--threads", "2", "--time", "2", "--locks", "mcs"];
            run(&Cli::parse_from(words.iter().chain(more)))
        };
        let error = spread(&["--cpus", "1,2"]).unwrap_err().to_string();
        assert!(error.contains("give --cpus one number"), "{error}");
        spread(&["--cpus", "2"]).unwrap();
    }

    #[test]
    fn a_range_of_cpus_doubles_and_keeps_its_end() {
        assert_eq!(cpus("1..256").unwrap().0, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert_eq!(cpus("3..20").unwrap().0, [3, 6, 12, 20]);
        assert_eq!((cpus("5..5").unwrap().0, cpus("8, 1,8").unwrap().0), (vec![5], vec![1, 8]));
        for (text, says) in [("0..4", "0 CPUs"), ("4..2", "empty"), ("two", "two"), ("1..99999", "99999")] {
            assert!(format!("{:#}", cpus(text).unwrap_err()).contains(says), "{text}");
        }
    }
}
