//! The command line.

use crate::programs::options::{self, List};
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
pub struct Arguments {
    /// Tasks that want the lock
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub tasks: u32,
    /// Length of a trial, in seconds; his took 10
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = options::seconds)]
    pub seconds: Duration,
    /// How often each lock runs
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST",
          default_value = "semaphore,throughput,unfair,asym,calock,fair,pi,std,parking_lot,pthread,sem_t",
          value_parser = options::lock_names)]
    pub locks: List<&'static Entry>,
    /// Write the record here [default: test-mutex.json in target/ulocks-report]
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
