//! The command line.

use super::Section;
use crate::programs::options::{self, List};
use crate::programs::turns::Order;
use crate::subjects::locks::Entry;
use clap::Parser;
use std::path::PathBuf;

const ABOUT: &str = "\
Measures locks as Waiman Long did in his mail on throughput-optimised futexes of 2016: threads lock and unlock one lock \
a number of times; reported are the times until they are done, the system time, and the calls to the kernel.";

/// Measures locks as Waiman Long did in 2016.
#[derive(Debug, Parser)]
#[command(name = "tofutex", version, long_about = ABOUT)]
struct Arguments {
    /// Threads that want the lock
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: u32,
    /// Acquisitions with the short section, all threads together; his were 10,000,000
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Acquisitions with the section that sleeps, all threads together; his were 100,000
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(1..))]
    sleeps: u64,
    /// How often each lock runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = "wait-wake,pi,throughput,unfair,calock,std,parking_lot",
          value_parser = options::lock_names)]
    locks: List<&'static Entry>,
    /// Write the record here [default: tofutex.json in target/ulocks-report]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Parses the command line, or ends the program: help with 0, an error with 2.
pub fn parse() -> (Order, Vec<(Section, u64)>) {
    let a = options::parse::<Arguments>();
    let cases = vec![(Section::Short, a.operations), (Section::Sleep, a.sleeps)];
    let (workers, window_ms) = (a.threads, 0);
    (Order { workers, window_ms, rounds: a.rounds, locks: a.locks.0, json: a.json }, cases)
}
