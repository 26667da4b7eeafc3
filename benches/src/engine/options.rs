//! The command line of the program, and the parsers that other programs share with it.
//!
//! `cargo bench -- ARGUMENTS` hands the same arguments to both benches: to the program of the rows
//! and to the one that criterion runs. Each therefore passes over what only the other knows
//! ([`for_criterion`], [`parse_from`]); what neither knows is an error. Errors are one line that
//! says what is wrong and what is allowed, and the exit code is 2.

use super::cell::Subject;
use super::program;
use super::progress::{print, say};
use super::record::Mode;
use crate::rows::{Row, Wish};
use crate::run::busy_work::Span;
use crate::run::machine;
use crate::run::pinning::Pin;
use crate::workloads::Times;
use anyhow::{Context, Result, bail, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Measures the locks of the ulocks family and those that people use today, and says which to take
#[derive(Parser, Clone, Debug, Default)]
#[command(name = "ulocks", bin_name = "cargo bench --")]
pub struct Options {
    /// The rows to run; all of them if none is named
    #[arg(value_name = "ROWS")]
    pub rows: Vec<String>,
    /// List the rows, what they measure, and their share of the time
    #[arg(long)]
    pub list: bool,
    /// A look in four minutes: short windows, few rounds
    #[arg(long)]
    pub quick: bool,
    /// The longest windows, all rounds and all subjects, however long that takes
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,
    /// Go on with a run that was interrupted; its options are given again
    #[arg(long)]
    pub resume: bool,
    /// Only cells whose section or label contains this
    #[arg(long, value_name = "PART")]
    pub only: Option<String>,
    /// The locks to measure
    #[arg(long, value_name = "LIST", value_parser = lock_names)]
    pub locks: Option<List<String>>,
    /// Numbers of threads, such as 1,2,4..64; A..B doubles from A until B
    #[arg(long, value_name = "LIST", value_parser = counts, allow_hyphen_values = true)]
    pub threads: Option<List<u32>>,
    /// Mean time inside the lock (3us, 250ns, 0); with --think or alone, instead of the usual times
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub hold: Option<Duration>,
    /// Mean time outside the lock
    #[arg(long, alias = "non-hold", value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub think: Option<Duration>,
    /// Length of the measured window of each trial, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, allow_hyphen_values = true)]
    pub seconds: Option<Duration>,
    /// Rounds to run, neither more nor fewer
    #[arg(long, value_name = "N", value_parser = rounds, allow_hyphen_values = true)]
    pub rounds: Option<u32>,
    /// Where workers run
    #[arg(long, value_enum, value_name = "HOW")]
    pub pin: Option<Pin>,
    /// Write the records of this run here too, as one JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print the tables, which are in files otherwise
    #[arg(long, short)]
    pub verbose: bool,
    /// Passed by cargo bench.
    #[arg(long, hide = true)]
    pub bench: bool,
    /// Run everything once, to see that it runs.
    #[arg(long, hide = true)]
    pub test: bool,
}

impl Options {
    /// What the run can support. Without `--bench` this is `cargo test`, as criterion sees it, too.
    pub fn mode(&self) -> Mode {
        match self {
            Self { test: true, .. } | Self { bench: false, .. } => Mode::Smoke,
            Self { quick: true, .. } => Mode::Quick,
            _ => Mode::Full,
        }
    }

    /// What is asked of a row, on this machine.
    pub fn wish(&self) -> Wish {
        let ns = |time: Option<Duration>| time.unwrap_or_default().as_nanos() as u64;
        let times = Times { hold_ns: ns(self.hold), think_ns: ns(self.think) };
        Wish {
            cpus: machine::describe().cpus() as u32,
            mode: self.mode(),
            full: self.full,
            threads: self.threads.as_ref().map(|list| list.0.clone()),
            times: (self.hold.is_some() || self.think.is_some()).then_some(times),
            subjects: self.locks.as_ref().map(|list| list.0.clone()),
        }
    }

    /// Whether something of this group of criterion's was asked for, or no group at all.
    pub fn runs(&self, group: &str) -> bool {
        let mut groups = self.rows.iter().filter(|name| is_group(name)).peekable();
        groups.peek().is_none() || groups.any(|name| name.split('/').next() == Some(group))
    }
}

/// A list in one argument. (clap takes a bare `Vec` for an option that may be repeated.)
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// The groups of benchmarks that criterion runs. As a name of a row each of them, and what begins
/// with it and a slash, is criterion's filter.
pub const GROUPS: [&str; 4] = ["no_contention", "contended", "readers", "handoff"];

/// What cargo bench hands on for the rows and criterion does not know. A `=` stands behind what
/// takes a value. `--quick`, `--verbose` and `--list` mean something to both.
const OURS: &str = "--threads= --hold= --think= --non-hold= --seconds= --rounds= --only= --locks= --pin= \
    --json= --full --resume";

/// What criterion knows and the rows do not.
const CRITERIONS: &str = "\
    --color= --colour= -c= --quiet --noplot -n --save-baseline= -s= \
    --discard-baseline --baseline= -b= --baseline-lenient= --format= --ignored --exact \
    --profile-time= --load-baseline= --sample-size= --warm-up-time= --measurement-time= \
    --nresamples= --noise-threshold= --confidence-level= --significance-level= \
    --plotting-backend= --output-format= --nocapture --show-output --include-ignored";

/// What help ends with.
const NOTES: &str = "
Each trial runs in a process of its own. The last screen is the answer; records, tables and a page
are written to `ulocks-report` in the target directory. Options of criterion, such as --baseline,
reach its groups.";

/// Parses the command line of a program, or ends it: help with 0, an error in one line with 2.
pub fn parse<P: Parser>() -> P {
    parse_from(P::command(), std::env::args_os().collect())
}

/// Parses the command line of the program of these rows.
pub fn parse_bench(rows: &[Row]) -> Options {
    parse_from(with_rows(rows), without(std::env::args_os().collect(), CRITERIONS))
}

/// The rows as a list, for help and `--list`.
pub fn list(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let (full, quick) = row.share_s;
        format!("  {:12} {full:>4} s, {quick:>3} s quick   {}\n", row.name, row.about)
    };
    let groups = GROUPS.join(", ");
    format!(
        "Rows, and how long each takes:\n{}Groups of criterion, benchmarks of single calls: {groups}\n",
        rows.iter().map(line).collect::<String>()
    )
}

/// The command line with the rows in its help.
fn with_rows(rows: &[Row]) -> clap::Command {
    Options::command().after_help(list(rows) + NOTES)
}

/// Prepares the bench that criterion runs: checks the whole command line, and hands criterion only
/// what it knows.
///
/// criterion reads the arguments of the process, so the process starts itself again without the
/// others; all of them survive that in the environment. Where only rows are named it ends here.
pub fn for_criterion(rows: &[Row]) -> Options {
    const ARGUMENTS: &str = "ULOCKS_BENCH_ARGUMENTS";
    let parse = |given: Vec<OsString>| parse_from::<Options>(with_rows(rows), without(given, CRITERIONS));
    if let Ok(given) = std::env::var(ARGUMENTS) {
        return parse(given.split('\n').map(Into::into).collect());
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    if has("--help") || has("-h") {
        // The program of the rows says the rest.
        let code = print(&format!(
            "Benchmarks of single calls, run by criterion: {}\nIts own options: {}\n\n",
            GROUPS.join(", "),
            CRITERIONS.replace("= ", " ")
        ));
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
    let options = parse(arguments.clone());
    program::check(rows, &options).unwrap_or_else(|error| refuse(&error));
    let groups: Vec<&String> = options.rows.iter().filter(|name| is_group(name)).collect();
    // A list of criterion is hundreds of lines; tools that want it name a format.
    if (groups.is_empty() && !options.rows.is_empty()) || (options.list && !has("--format")) {
        std::process::exit(0);
    }
    // criterion takes one filter.
    let kept = if let [group] = groups[..] { group.as_str() } else { "" };
    let is_known = |argument: &OsString| {
        argument == kept || !options.rows.iter().any(|name| argument.as_os_str() == name.as_str())
    };
    let given = arguments.join("\n".as_ref());
    let rest: Vec<OsString> = without(arguments, OURS).into_iter().skip(1).filter(is_known).collect();
    let error = Command::new("/proc/self/exe").args(rest).env(ARGUMENTS, given).exec();
    refuse(&anyhow::Error::new(error).context("cannot start this bench again"));
}

/// Whether the name of a row is a filter of criterion's instead.
pub fn is_group(name: &str) -> bool {
    GROUPS
        .iter()
        .any(|group| name.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Ends the program with a one-line error and exit code 2.
pub fn refuse(error: &anyhow::Error) -> ! {
    say(&format!("error: {error:#}"));
    std::process::exit(2);
}

/// Parses these arguments, or ends the program.
fn parse_from<P: FromArgMatches>(command: clap::Command, arguments: Vec<OsString>) -> P {
    try_parse(command, arguments).unwrap_or_else(|(error, line)| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
        _ => {
            say(&format!("error: {line}"));
            std::process::exit(2);
        }
    })
}

/// Parses; an error comes with its one line.
fn try_parse<P: FromArgMatches>(
    mut command: clap::Command,
    arguments: Vec<OsString>,
) -> Result<P, (clap::Error, String)> {
    let parsed = command.try_get_matches_from_mut(arguments);
    parsed.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| {
        let line = one_line(&error, &command);
        (error, line)
    })
}

/// clap's first paragraph, and what is allowed where that does not say it.
fn one_line(error: &clap::Error, command: &clap::Command) -> String {
    let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let mut known: Vec<String> =
        options.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
    known.extend(command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()));
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg)
    {
        return format!("unexpected argument '{name}'; allowed: {}", known.join(", "));
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

/// Parses a list of subjects of any registry.
pub fn lock_names(text: &str) -> Result<List<String>> {
    let one = |name: &str| {
        let all = Subject::names();
        ensure!(all.contains(&name), "unknown lock '{name}'; allowed: {}", all.join(", "));
        Ok(name.to_owned())
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
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

#[cfg(test)]
mod tests;
