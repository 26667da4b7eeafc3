//! The command line of the program, and the parsers that other programs share with it.
//!
//! `cargo bench -- ARGUMENTS` hands the same arguments to both benches: to the program of the rows
//! and to the one that criterion runs. Each therefore passes over what only the other knows
//! ([`for_criterion`], [`parse_bench`]); what neither knows is an error. Errors are one line that
//! says what is wrong and what is allowed, and the exit code is 2.

use super::cell::Subject;
use super::program;
use super::progress::{print, say};
use super::record::Mode;
use crate::rows::{Row, Wish};
use crate::run::machine;
use crate::run::pinning::Pin;
use crate::subjects::locks::Entry;
use crate::workloads::Times;
use anyhow::{Context, Result, anyhow, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};
use std::collections::BTreeSet;
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
    #[arg(long, visible_alias = "non-hold", value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub think: Option<Duration>,
    /// Length of the measured window of each trial, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, allow_hyphen_values = true)]
    pub seconds: Option<Duration>,
    /// Rounds to run, neither more nor fewer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), allow_hyphen_values = true)]
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

    /// The options given that only rows heed.
    pub fn of_rows(&self) -> Vec<&'static str> {
        let all = [
            ("--only", self.only.is_some()),
            ("--hold", self.hold.is_some()),
            ("--think", self.think.is_some()),
            ("--seconds", self.seconds.is_some()),
            ("--rounds", self.rounds.is_some()),
            ("--pin", self.pin.is_some()),
            ("--json", self.json.is_some()),
            ("--resume", self.resume),
        ];
        all.into_iter().filter_map(|(option, is_given)| is_given.then_some(option)).collect()
    }

    /// Whether something of this group of criterion's was asked for, or no group at all.
    pub fn runs(&self, group: &str) -> bool {
        let mut groups = self.rows.iter().filter_map(|name| group_of(name)).peekable();
        groups.peek().is_none() || groups.any(|asked| asked == group)
    }
}

/// A list in one argument. (clap takes a bare `Vec` for an option that may be repeated.)
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// The groups of benchmarks that criterion runs. As a name of a row each of them, and what begins
/// with it and a slash, is criterion's filter.
pub const GROUPS: [&str; 4] = ["no_contention", "contended", "readers", "handoff"];

/// What criterion knows and the rows do not. A `=` stands behind what takes a value.
const CRITERIONS: &str = "\
    --color= --colour= -c= --quiet --noplot -n --save-baseline= -s= \
    --discard-baseline --baseline= -b= --baseline-lenient= --format= --ignored --exact \
    --profile-time= --load-baseline= --sample-size= --warm-up-time= --measurement-time= \
    --nresamples= --noise-threshold= --confidence-level= --significance-level= \
    --plotting-backend= --output-format= --nocapture --show-output --include-ignored";

/// What means something to both.
const BOTH: [&str; 5] = ["bench", "test", "list", "quick", "verbose"];

/// What help ends with.
const NOTES: &str = "
Each trial runs in a process of its own. The last screen is the answer; records, tables and a page
are written to `ulocks-report` in the target directory. Options of criterion, such as --baseline,
reach its groups.";

/// Parses the command line of a program, or ends it: help with 0, an error in one line with 2.
pub fn parse<P: Parser>() -> P {
    try_parse(P::command(), std::env::args_os().collect()).unwrap_or_else(|error| refuse(&error))
}

/// Parses a command line for the program of these rows.
pub fn parse_bench(rows: &[Row], arguments: Vec<OsString>) -> Options {
    let command = Options::command().after_help(list(rows) + NOTES);
    try_parse(command, without(arguments, CRITERIONS)).unwrap_or_else(|error| refuse(&error))
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

/// Prepares the bench that criterion runs: checks the whole command line, and hands criterion only
/// what it knows.
///
/// criterion reads the arguments of the process, so the process starts itself again without the
/// others; all of them survive that in the environment. Where only rows are named it ends here.
pub fn for_criterion(rows: &[Row]) -> Options {
    const ARGUMENTS: &str = "ULOCKS_BENCH_ARGUMENTS";
    if let Ok(given) = std::env::var(ARGUMENTS) {
        return parse_bench(rows, given.split('\n').map(Into::into).collect());
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
    let options = parse_bench(rows, arguments.clone());
    if let Err(error) = program::plan(rows, &options) {
        refuse(&error);
    }
    let groups: Vec<&String> = options.rows.iter().filter(|name| group_of(name).is_some()).collect();
    // Only rows go on with an interrupted run; the groups ran before it. A list of criterion is
    // hundreds of lines; tools that want it name a format.
    let for_rows = groups.is_empty() && (!options.rows.is_empty() || options.resume);
    if for_rows || (options.list && !has("--format")) {
        std::process::exit(0);
    }
    // criterion takes one filter.
    let kept = if let [group] = groups[..] { group.as_str() } else { "" };
    let is_known = |argument: &OsString| {
        argument == kept || !options.rows.iter().any(|name| argument.as_os_str() == name.as_str())
    };
    let given = arguments.join("\n".as_ref());
    let rest: Vec<OsString> = without(arguments, &ours()).into_iter().skip(1).filter(is_known).collect();
    let error = Command::new("/proc/self/exe").args(rest).env(ARGUMENTS, given).exec();
    refuse(&anyhow::Error::new(error).context("cannot start this bench again"));
}

/// The group of criterion's that the name of a row filters, if it is no row.
pub fn group_of(name: &str) -> Option<&'static str> {
    GROUPS.into_iter().find(|&group| name.split('/').next() == Some(group))
}

/// Ends the program with a one-line error and exit code 2.
pub fn refuse(error: &anyhow::Error) -> ! {
    say(&format!("error: {error:#}"));
    std::process::exit(2);
}

/// Parses; an error has one line. Help ends the program.
fn try_parse<P: FromArgMatches>(mut command: clap::Command, arguments: Vec<OsString>) -> Result<P> {
    let parsed = command.try_get_matches_from_mut(arguments);
    parsed.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
        _ => anyhow!(one_line(&error, &command)),
    })
}

/// clap's first paragraph, and what is allowed where that does not say it.
fn one_line(error: &clap::Error, command: &clap::Command) -> String {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg)
    {
        let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let options = options.filter_map(|argument| Some(format!("--{}", argument.get_long()?)));
        let commands = command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned());
        let known: Vec<String> = options.chain(commands).collect();
        return format!("unexpected argument '{name}'; allowed: {}", known.join(", "));
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// The arguments of this program, as a record has them. Where else the record goes changes nothing
/// in it, and may name a user.
pub(super) fn arguments() -> String {
    let arguments = without(std::env::args_os().skip(1).collect(), "--bench --resume --json=");
    arguments.join(" ".as_ref()).to_string_lossy().into_owned()
}

/// What the rows know and criterion does not, as [`CRITERIONS`] has it.
fn ours() -> String {
    let mut text = String::new();
    for argument in Options::command().get_arguments() {
        let value = if argument.get_action().takes_values() { "=" } else { "" };
        let names = argument.get_long_and_visible_aliases().unwrap_or_default();
        let ours = names.iter().filter(|name| !BOTH.contains(name));
        text.extend(ours.map(|name| format!("--{name}{value} ")));
    }
    text
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
    let unit = text.trim_start_matches(|c: char| !c.is_alphabetic());
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => 0.0,
    };
    let number: Option<f64> = text[..text.len() - unit.len()].parse().ok();
    let ns = number.filter(|_| scale > 0.0 || text == "0").map(|number| number * scale);
    let ns = ns.filter(|ns| (0.0..=1e12).contains(ns)).with_context(|| {
        format!("'{text}' is not a time; allowed: 0 to 1000s with a unit, such as 250ns, 3us, 0.5ms")
    })?;
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// Parses a length in seconds, without a unit.
pub fn seconds(text: &str) -> Result<Duration> {
    let number = text.parse().ok().filter(|number| (0.001..=3600.0).contains(number));
    let wrong = || format!("'{text}' is not a number of seconds; allowed: 0.001 to 3600");
    number.map(Duration::from_secs_f64).with_context(wrong)
}

/// Parses numbers of workers: `1,2,4..64`. A range doubles from its start and always contains its
/// end.
pub fn counts(text: &str) -> Result<List<u32>> {
    let allowed = "allowed: 1 to 10000, as in 1,2,4..64 (a range doubles)";
    let one = |text: &str| {
        let count = text.parse().ok().filter(|count| (1..=10_000).contains(count));
        count.with_context(|| format!("'{text}' is not a number of workers; {allowed}"))
    };
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (from, to) = part.split_once("..").unwrap_or((part, part));
        let (from, to) = (one(from)?, one(to)?);
        ensure!(from <= to, "the range {part} runs backwards; {allowed}");
        all.extend(std::iter::successors(Some(from), |&n| Some(n * 2)).take_while(|&n| n < to));
        all.insert(to);
    }
    Ok(List(all.into_iter().collect()))
}

/// Parses a list of subjects of any registry.
pub fn lock_names(text: &str) -> Result<List<String>> {
    let one = |name: &str| {
        let all = Subject::names();
        // `calock-0` is another name, which no list has.
        let is_known = all.contains(&name) || Entry::find(name).is_ok();
        ensure!(is_known, "unknown lock '{name}'; allowed: {}", all.join(", "));
        Ok(name.to_owned())
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

#[cfg(test)]
mod tests;
