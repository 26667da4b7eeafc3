//! The command line.

use crate::programs::options::{self, List};
use crate::subjects::locks::Entry;
use clap::Parser;
use std::path::PathBuf;

const ABOUT: &str = "\
Measures locks as Waiman Long did in his mail on throughput-optimised futexes of 2016: threads lock and unlock one lock \
a number of times; reported are the times until they are done, the system time, and the calls to the kernel.";

/// Measures locks as Waiman Long did in 2016.
#[derive(Debug, Parser)]
#[command(name = "tofutex", version, long_about = ABOUT)]
pub struct Arguments {
    /// Threads that want the lock
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub threads: u32,
    /// Acquisitions with the short section, all threads together; his were 10,000,000
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: u64,
    /// Acquisitions with the section that sleeps, all threads together; his were 100,000
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(1..))]
    pub sleeps: u64,
    /// How often each lock runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = "wait-wake,pi,throughput,unfair,calock,std,parking_lot",
          value_parser = options::lock_names)]
    pub locks: List<&'static Entry>,
    /// Write the record here [default: tofutex.json in target/ulocks-report]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Parses the command line, or ends the program: help with 0, an error with 2.
pub fn parse() -> Arguments {
    let arguments = options::parse::<Arguments>();
    if let Some(file) = &arguments.json {
        options::writable("--json", file).unwrap_or_else(|error| options::refuse(&error));
    }
    arguments
}
