//! The command line of the benches, and the parsers that other programs share with it.
//!
//! `cargo bench -- ARGUMENTS` hands the same arguments to every bench: to those that criterion runs
//! and to those with a harness of their own. Each therefore passes over what only the other kind
//! knows ([`for_criterion`], [`parse_bench`]); what neither knows is an error. Errors are one line
//! that says what is wrong and what is allowed, and the exit code is 2.

use crate::report::Mode;
use crate::run::busy_work::Span;
use crate::run::pinning::Pin;
use crate::subjects::locks::{self, Entry};
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Options of the benches with a harness of their own.
#[derive(Args, Clone, Debug, Default)]
pub struct BenchOptions {
    /// Numbers of threads; A..B doubles from A until B
    #[arg(long, value_name = "LIST", value_parser = counts)]
    pub threads: Option<List<u32>>,
    /// Mean time inside the lock (3us, 250ns, 0); with --non-hold or alone, instead of the usual
    /// workloads
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub hold: Option<Duration>,
    /// Mean time outside the lock
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub non_hold: Option<Duration>,
    /// Short critical sections instead of the usual workloads: 20 to 500 ns inside and outside
    #[arg(long, conflicts_with_all = ["hold", "non_hold"])]
    pub short: bool,
    /// Length of the measured window of each trial, in seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Rounds to run, neither more nor fewer
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub rounds: Option<u32>,
    /// The locks to measure
    #[arg(long, value_name = "LIST", value_parser = lock_names)]
    pub locks: Option<List<&'static Entry>>,
    /// Where workers run: none, compact, scatter or node
    #[arg(long, value_name = "HOW")]
    pub pin: Option<Pin>,
    /// Write the results here, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Only rows of promises, condvar, convoy, psrw, sembench, semscale and shared whose name
    /// contains this, such as throughput/hog or queue/
    #[arg(long, value_name = "PART")]
    pub only: Option<String>,
    /// Fewer and shorter trials
    #[arg(long)]
    pub quick: bool,
    /// The longest windows and all rounds, however long that takes
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,
    /// Go on with a run of scaling that was interrupted; its options are given again
    #[arg(long)]
    pub resume: bool,
    /// Print the long tables of scaling, which are in a file otherwise
    #[arg(long, short)]
    pub verbose: bool,
    /// Run only the bench whose name contains this
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Passed by cargo bench.
    #[arg(long, hide = true)]
    pub bench: bool,
    /// Run everything once, to see that it runs.
    #[arg(long, hide = true)]
    pub test: bool,
}

impl BenchOptions {
    /// What the run can support. Without `--bench` this is `cargo test`, as criterion sees it, too.
    pub fn mode(&self) -> Mode {
        match self {
            Self { test: true, .. } | Self { bench: false, .. } => Mode::Smoke,
            Self { quick: true, .. } => Mode::Quick,
            _ => Mode::Full,
        }
    }

    /// Whether the filter, if there is one, selects the bench called `name`.
    pub fn selects(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
    }
}

/// A list in one argument. (clap takes a bare `Vec` for an option that may be repeated.)
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// What cargo bench hands on for a harness of its own and criterion does not know. A `=` stands
/// behind what takes a value. `--quick` and `--verbose` mean something to both.
const OURS: &str = "--threads= --hold= --non-hold= --seconds= --rounds= --only= --locks= --pin= --json= \
    --short --full --resume";

/// What criterion knows and our harnesses do not.
const CRITERIONS: &str = "\
    --color= --colour= -c= --quiet --noplot -n --save-baseline= -s= \
    --discard-baseline --baseline= -b= --baseline-lenient= --list --format= --ignored --exact \
    --profile-time= --load-baseline= --sample-size= --warm-up-time= --measurement-time= \
    --nresamples= --noise-threshold= --confidence-level= --significance-level= \
    --plotting-backend= --output-format= --nocapture --show-output --include-ignored";

/// Parses the command line of a program, or ends it: help with 0, an error in one line with 2.
pub fn parse<P: Parser>() -> P {
    parse_from(std::env::args_os().collect())
}

/// As [`parse`], for a bench: passes over what criterion knows.
pub fn parse_bench<P: Parser>() -> P {
    parse_from(without(std::env::args_os().collect(), CRITERIONS))
}

/// Prepares a criterion bench: checks the whole command line, and hands criterion only what it
/// knows.
///
/// criterion reads the arguments of the process, so a process that was given others starts itself
/// again without them; `--locks` and `--full` survive that in the environment. Before that `check`
/// has its say on what the parsers cannot see, since no user wants to hear of a wrong option from
/// the last bench.
pub fn for_criterion(check: impl FnOnce(&BenchOptions) -> Result<()>) -> CriterionOptions {
    const LOCKS: &str = "ULOCKS_BENCH_LOCKS";
    const FULL: &str = "ULOCKS_BENCH_FULL";
    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: BenchOptions,
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let Cli { options } = parse_from(without(arguments.clone(), CRITERIONS));
    let known = without(arguments.clone(), OURS);
    if known.len() == arguments.len() {
        let locks =
            std::env::var(LOCKS).map(|names| lock_names(&names)).unwrap_or_else(|_| Ok(List(Vec::new())));
        let locks = locks.unwrap_or_else(|error| refuse(&error));
        let full = std::env::var_os(FULL).is_some();
        return CriterionOptions { locks: locks.0, quick: options.quick, full };
    }
    check(&options).unwrap_or_else(|error| refuse(&error));
    let locks = options.locks.map_or(Vec::new(), |locks| locks.0);
    let names: Vec<_> = locks.iter().map(|entry| entry.name).collect();
    let mut again = Command::new("/proc/self/exe");
    again.args(&known[1..]).env_remove(LOCKS).env_remove(FULL);
    if !names.is_empty() {
        again.env(LOCKS, names.join(","));
    }
    if options.full {
        again.env(FULL, "1");
    }
    let error = again.exec();
    refuse(&anyhow::Error::new(error).context("cannot start this bench again"));
}

/// What a criterion bench needs to know beside criterion's own options.
#[derive(Debug)]
pub struct CriterionOptions {
    locks: Vec<&'static Entry>,
    /// Whether to be done in seconds.
    pub quick: bool,
    /// Whether to take as long as makes sense.
    pub full: bool,
}

impl CriterionOptions {
    /// Whether the lock called so was asked for, or none was.
    pub fn asked_for(&self, name: &str) -> bool {
        self.locks.is_empty() || self.locks.iter().any(|entry| entry.name == name)
    }

    /// The locks asked for; if none was, all but twins that count, variants with a fixed patience,
    /// and probes.
    pub fn locks(&self) -> Vec<&'static Entry> {
        if self.locks.is_empty() {
            return locks::Entry::all().iter().filter(|entry| entry.is_usual()).collect();
        }
        self.locks.clone()
    }
}

/// Ends the program with a one-line error and exit code 2.
pub fn refuse(error: &anyhow::Error) -> ! {
    eprintln!("error: {error:#}");
    std::process::exit(2);
}

fn parse_from<P: Parser>(arguments: Vec<OsString>) -> P {
    try_parse(arguments).unwrap_or_else(|(error, line)| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
        _ => {
            eprintln!("error: {line}");
            std::process::exit(2);
        }
    })
}

/// Parses; an error comes with its one line.
fn try_parse<P: Parser>(arguments: Vec<OsString>) -> Result<P, (clap::Error, String)> {
    P::try_parse_from(arguments).map_err(|error| {
        let line = one_line(&error, &P::command());
        (error, line)
    })
}

/// clap's first paragraph, and what is allowed where that does not say it.
fn one_line(error: &clap::Error, command: &clap::Command) -> String {
    let known = || {
        let mut known = Vec::new();
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            known.extend(argument.get_long().map(|long| format!("--{long}")));
        }
        known.join(", ")
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg)
    {
        return format!("unexpected argument '{name}'; allowed: {}", known());
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// `arguments` without the options in `foreign`, in the forms `--name value` and `--name=value`.
fn without(arguments: Vec<OsString>, foreign: &str) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        match foreign.split_whitespace().find(|foreign| foreign.trim_end_matches('=') == name) {
            Some(foreign) if foreign.ends_with('=') && !text.contains('=') => drop(rest.next()),
            Some(_) => {}
            None => kept.push(argument),
        }
    }
    kept
}

/// Parses a time: `0`, or a number with a unit.
pub fn duration(text: &str) -> Result<Duration> {
    let allowed = "allowed: 0, or a number with ns, us, ms or s, such as 250ns, 3us, 0.5ms";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    ensure!(!unit.is_empty(), "'{text}' has no unit of time; {allowed}");
    let known = units.iter().find(|known| known.0 == unit);
    let &(_, scale) = known.with_context(|| format!("'{unit}' is not a unit of time; {allowed}"))?;
    let number: f64 =
        number.parse().ok().with_context(|| format!("'{number}' is not a number; {allowed}"))?;
    let ns = number * scale;
    ensure!((0.0..=1e12).contains(&ns), "a time of {text} is out of range; allowed: 0 to 1000s");
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// Parses a length in seconds, without a unit.
pub fn seconds(text: &str) -> Result<Duration> {
    let allowed = "allowed: 0.001 to 3600";
    let number: f64 =
        text.parse().ok().with_context(|| format!("'{text}' is not a number of seconds; {allowed}"))?;
    ensure!((0.001..=3600.0).contains(&number), "{text} seconds are out of range; {allowed}");
    Ok(Duration::from_secs_f64(number))
}

/// Parses numbers of workers: `1,2,4..64`. A range doubles from its start and always contains its
/// end.
pub fn counts(text: &str) -> Result<List<u32>> {
    let allowed = "allowed: 1 to 10000, as in 1,2,4..64 (a range doubles)";
    let one = |text: &str| -> Result<u32> {
        let count =
            text.parse().ok().with_context(|| format!("'{text}' is not a number of workers; {allowed}"))?;
        ensure!((1..=10_000).contains(&count), "{count} workers are out of range; {allowed}");
        Ok(count)
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(one(part)?),
            Some((from, to)) => {
                let (from, to) = (one(from)?, one(to)?);
                ensure!(from <= to, "the range {part} runs backwards; {allowed}");
                all.extend(std::iter::successors(Some(from), |&n| Some(n * 2)).take_while(|&n| n < to));
                all.push(to);
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(List(all))
}

/// Parses a number of rounds.
pub fn rounds(text: &str) -> Result<u32> {
    match text.parse() {
        Ok(rounds @ 1..=1000) => Ok(rounds),
        _ => bail!("'{text}' is not a number of rounds; allowed: 1 to 1000"),
    }
}

/// Parses a list of times.
pub fn durations(text: &str) -> Result<List<Duration>> {
    text.split(',').map(duration).collect::<Result<_>>().map(List)
}

/// Parses a list of percentages.
pub fn percentages(text: &str) -> Result<List<u8>> {
    let one = |text: &str| match text.parse() {
        Ok(share @ 0..=100) => Ok(share),
        _ => bail!("'{text}' is not a percentage; allowed: 0 to 100"),
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

/// Parses a list of things that are `known` by name; `what` is one of them.
pub fn named<T: Copy>(text: &str, what: &str, known: &[(&str, T)]) -> Result<List<T>> {
    let one = |name: &str| match known.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            bail!("unknown {what} '{name}'; allowed: {}", names.join(", "))
        }
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

/// Parses a list of locks in the registry.
pub fn lock_names(text: &str) -> Result<List<&'static Entry>> {
    text.split(',').map(Entry::find).collect::<Result<_>>().map(List)
}

/// Refuses a mean time that is too short for the busy work, or so long that a run holds but a few
/// of them.
pub fn measurable(option: &str, mean: Duration, run: Duration, iterations_per_us: f64) -> Result<()> {
    Span::new(&format!("{option}: a time"), mean.as_nanos() as u64, iterations_per_us)?;
    let most = run / 10;
    ensure!(
        mean <= most,
        "{option}: a time of {mean:?} cannot be measured in runs of {run:?}; allowed: up to {most:?}, a tenth of --seconds"
    );
    Ok(())
}

/// Refuses a file that cannot be written, before anything is measured in vain. What it holds stays
/// until there is something better.
pub fn writable(option: &str, file: &Path) -> Result<()> {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).map_err(|error| {
        anyhow!("{option}: cannot write {}: {error}; allowed: a file that can be created", file.display())
    })
}

#[cfg(test)]
mod tests;
