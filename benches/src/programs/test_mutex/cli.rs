//! The command line.

use super::Case;
use crate::programs::options::{self, List};
use crate::programs::turns::Order;
use crate::subjects::locks::Entry;
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

const ABOUT: &str = "\
Measures locks as Ingo Molnar did in his mail on mutexes of 2005: tasks that lock and unlock, or create and unlink files \
in one directory; reported are loops a second, CPU use, and loops of a CPU second.";

/// Measures locks as Ingo Molnar did in 2005.
#[derive(Debug, Parser)]
#[command(name = "test-mutex", version, long_about = ABOUT)]
struct Arguments {
    /// Tasks that want the lock
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tasks: u32,
    /// Length of a trial, in seconds; his took 10
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = options::seconds)]
    seconds: Duration,
    /// How often each lock runs
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST",
          default_value = "semaphore,throughput,unfair,asym,calock,fair,pi,std,parking_lot,pthread,sem_t",
          value_parser = options::lock_names)]
    locks: List<&'static Entry>,
    /// Write the record here [default: test-mutex.json in target/ulocks-report]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Parses the command line, or ends the program: help with 0, an error with 2.
pub fn parse() -> (Order, Vec<(Case, u64)>) {
    let a = options::parse::<Arguments>();
    let cases = Case::ALL.map(|case| (case, 0)).to_vec();
    let (workers, window_ms) = (a.tasks, (a.seconds.as_millis() as u64).max(1));
    (Order { workers, window_ms, rounds: a.rounds, locks: a.locks.0, json: a.json }, cases)
}
