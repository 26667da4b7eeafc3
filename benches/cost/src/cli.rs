//! `ulocks-cost`: the command line.

use super::locks::{Lock, all, named};
use super::{Cell, table};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde_json::json;
use std::fs::{File, create_dir_all, rename};
use std::io::Write;
use std::path::PathBuf;
use ulocks_vm_cost::{MOST_CPUS, Machine, Placement, Run};

/// Predicts what the locks cost on many CPUs: throughput, line transfers, fairness, waits. Nothing
/// is measured.
#[derive(Debug, Parser)]
#[command(name = "ulocks-cost", version, allow_negative_numbers = true)]
pub struct Cli {
    /// Numbers of CPUs: `1,2,24`, or `1..256` for doublings
    #[arg(long, default_value = "1..64", value_parser = cpus)]
    cpus: Cpus,
    /// The locks, by name
    #[arg(long, value_delimiter = ',', default_value = "unfair,tas,ttas,ticket,mcs", value_parser = named)]
    locks: Vec<Lock>,
    /// Threads for each CPU
    #[arg(long, default_value_t = 1, value_parser = at_least(1))]
    threads_per_cpu: usize,
    /// Threads, however many CPUs there are
    #[arg(long, conflicts_with = "threads_per_cpu", value_parser = at_least(1))]
    threads: Option<usize>,
    /// Time inside the lock, in nanoseconds
    #[arg(long, default_value_t = 30.0)]
    hold: f64,
    /// Time outside the lock, in nanoseconds
    #[arg(long, default_value_t = 150.0)]
    think: f64,
    /// Cache lines of data that a section writes
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
    /// Where predicted.json goes
    #[arg(long, value_name = "DIR", default_value = "ulocks-report")]
    out: PathBuf,
    /// List the locks
    #[arg(long)]
    list: bool,
}

/// Numbers of CPUs, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpus(Vec<usize>);

/// Runs the program.
///
/// # Errors
/// If an option is wrong, or a file cannot be read or written.
pub fn run(cli: &Cli) -> Result<()> {
    if cli.list {
        for Lock { name, about, .. } in all() {
            println!("{name:<14} {about}");
        }
        return Ok(());
    }
    let (locks, Cpus(cpus)) = (&cli.locks, &cli.cpus);
    let most = cpus.last().copied().unwrap_or(1);
    let machine = match &cli.machine {
        Some(path) => Machine::load(path)?,
        None => Machine::example_with(most),
    };
    machine.check()?;
    let has = machine.topology.total();
    ensure!(most <= has, "--cpus goes to {most}, and the machine {} has {has}", machine.name);
    // A folder that cannot be written is found now, and a run that is cut keeps the last record.
    let [path, new] = ["predicted.json", "predicted.json.new"].map(|name| cli.out.join(name));
    let cannot = || format!("cannot write {}", path.display());
    let mut record = create_dir_all(&cli.out).and_then(|()| File::create(&new)).with_context(cannot)?;

    println!("{machine}\n");
    let mut cells = Vec::new();
    for &cpus in cpus {
        for lock in locks {
            let threads = cli.threads.unwrap_or(cpus * cli.threads_per_cpu);
            let (cpus, placement) = match cli.spread {
                true => (has, Placement::Spread),
                false => (cpus, Placement::Compact),
            };
            let run = Run {
                cpus,
                placement,
                data_lines: cli.lines,
                hold_ns: cli.hold,
                think_ns: cli.think,
                time_ns: cli.time * 1_000.0,
                warm_up_ns: cli.warm_up * 1_000.0,
                ..Run::new(machine.clone(), threads)
            };
            let outcome =
                (lock.run)(&run).with_context(|| format!("{} on {cpus} CPUs came to nothing", lock.name))?;
            cells.push(Cell { lock: lock.name.to_owned(), outcome });
        }
    }
    let tables = table::text(&cells, locks.len());
    print!("{tables}");
    let threads =
        cli.threads.map_or(format!("{} thread(s) a CPU", cli.threads_per_cpu), |n| format!("{n} thread(s)"));
    let Cli { hold, think, time, warm_up, .. } = cli;
    let load = format!(
        "{hold} ns inside the lock, {think} ns outside, {threads}, {time} us of virtual time after {warm_up} us"
    );
    // The page of all figures reads it.
    let json = json!({
        "schema": "ulocks-predicted/1",
        "machine": machine.to_string().lines().next(),
        "load": load,
        "tables": tables,
        "cells": cells,
    });
    writeln!(record, "{json:#}").and_then(|()| rename(&new, &path)).with_context(cannot)?;
    println!("{}", path.display());
    Ok(())
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
    fn a_range_of_cpus_doubles_and_keeps_its_end() {
        assert_eq!(cpus("1..256").unwrap().0, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert_eq!(cpus("3..20").unwrap().0, [3, 6, 12, 20]);
        assert_eq!((cpus("5..5").unwrap().0, cpus("8, 1,8").unwrap().0), (vec![5], vec![1, 8]));
        for (text, says) in [("0..4", "0 CPUs"), ("4..2", "empty"), ("two", "two"), ("1..99999", "99999")] {
            assert!(format!("{:#}", cpus(text).unwrap_err()).contains(says), "{text}");
        }
    }
}
