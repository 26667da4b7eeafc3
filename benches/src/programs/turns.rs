//! What the programs of Molnar and Long share: a main function, locks that take turns, the ratio of
//! two of them, and a record.

use crate::programs::options;
use crate::report::{self, Ended, Table, units};
use crate::run::child::{self, Outcome, Runner, Task};
use crate::run::machine::{self, Machine};
use crate::statistics::median;
use crate::subjects::locks::Entry;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

/// A program whose locks take turns: its trials, and what it prints of them.
pub trait Turns: Task {
    /// What it is called.
    const NAME: &'static str;
    /// The version of its record.
    const SCHEMA: &'static str;
    /// What contends.
    const WORKERS: &'static str;
    /// The columns of its tables.
    const HEADER: &'static [&'static str];
    /// What the columns mean.
    const NOTES: &'static str;
    /// What the locks are put through.
    type Case: Copy + PartialEq + Display + Serialize + DeserializeOwned;

    /// A trial of a lock in a case, with so many operations of each contender.
    fn new(lock: &str, order: &Order, case: Self::Case, each: u64) -> Self;

    /// A line of a table; the first line has what ratios are taken to.
    fn fields(case: Self::Case, row: &RowOf<Self>, first: &RowOf<Self>) -> Vec<String>;
}

/// A row of a program.
pub type RowOf<S> = Row<<S as Turns>::Case, <S as Task>::Answer>;
/// A record of a program.
pub type RecordOf<S> = Record<<S as Turns>::Case, <S as Task>::Answer>;

/// What a run leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record<C, A> {
    /// The version of what it writes.
    pub schema: String,
    /// Why it ended.
    #[serde(default)]
    pub ended: Ended,
    /// The machine it ran on, at the start of the run.
    pub machine: Machine,
    /// How many contend.
    #[serde(alias = "tasks", alias = "threads")]
    pub workers: u32,
    /// One for each case and lock.
    pub rows: Vec<Row<C, A>>,
}

/// A lock in a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row<C, A> {
    /// What it is put through.
    #[serde(alias = "section")]
    pub case: C,
    /// Operations of all contenders together, if their number is fixed.
    #[serde(default)]
    pub operations: u64,
    /// The lock's name in the registry.
    pub lock: String,
    /// A trial for each round.
    pub rounds: Vec<A>,
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub struct Order {
    /// How many contend.
    pub workers: u32,
    /// How long a trial lasts, if not for a number of operations.
    pub window_ms: u64,
    /// How often each lock runs.
    pub rounds: u32,
    /// The locks; ratios are to the first.
    pub locks: Vec<&'static Entry>,
    /// Where to write the record.
    pub json: Option<PathBuf>,
}

/// Serves a trial if that is what the process was started for, or else runs the program. `parse`
/// reads its command line: the order, and the cases with their operations of all contenders.
pub fn main<S: Turns>(parse: impl FnOnce() -> (Order, Vec<(S::Case, u64)>)) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == child::TRIAL) {
        return child::serve::<S>();
    }
    let (order, cases) = parse();
    if let Some(file) = &order.json {
        options::writable("--json", file).unwrap_or_else(|error| options::refuse(&error));
    }
    run::<S>(&order, &cases).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run<S: Turns>(order: &Order, cases: &[(S::Case, u64)]) -> Result<ExitCode> {
    let runner = Runner::new()?;
    let destination = Destination::new(S::NAME, order.json.clone())?;
    let mut signal = None;
    let (workers, rounds) = (order.workers, order.rounds);
    let (ended, machine) = (Ended::Rounds, machine::describe());
    let mut record: RecordOf<S> =
        Record { schema: S::SCHEMA.into(), ended, machine, workers, rows: Vec::new() };
    println!("{}: {workers} {}, {rounds} rounds; {}", S::NAME, S::WORKERS, record.machine);
    for &(case, operations) in cases {
        let each = (operations / u64::from(workers)).max(1);
        let specs: Vec<S> = order.locks.iter().map(|lock| S::new(lock.name, order, case, each)).collect();
        let what = |turn: usize| format!("{}, {case}", order.locks[turn].name);
        let (answers, interrupted) = take(&runner, &specs, rounds, what)?;
        let operations = if operations == 0 { 0 } else { each * u64::from(workers) };
        let ran = order.locks.iter().zip(answers).filter(|(_, rounds)| !rounds.is_empty());
        let rows: Vec<RowOf<S>> =
            ran.map(|(lock, rounds)| Row { case, operations, lock: lock.name.into(), rounds }).collect();
        if !rows.is_empty() {
            print!("{}", table::<S>(case, &rows));
        }
        record.rows.extend(rows);
        if interrupted.is_some() {
            (signal, record.ended) = (interrupted, Ended::Interrupted);
            break;
        }
    }
    println!("\n{}", S::NOTES);
    destination.write(&record, signal)
}

/// The table of a case.
pub fn table<S: Turns>(case: S::Case, rows: &[RowOf<S>]) -> String {
    let mut table = Table::new(&[0], S::HEADER);
    rows.iter().for_each(|row| table.row(S::fields(case, row, &rows[0])));
    let of = match rows.first() {
        Some(row) if row.operations > 0 => format!(", {} operations", row.operations),
        _ => String::new(),
    };
    let mut out = format!("\n{case}{of}\n");
    table.print(&mut out);
    out
}

/// All tables of a record, with what their columns mean.
pub fn tables<S: Turns>(record: &RecordOf<S>) -> String {
    let mut out = format!("{} {}\n", record.workers, S::WORKERS);
    for rows in record.rows.chunk_by(|a, b| a.case == b.case) {
        out += &table::<S>(rows[0].case, rows);
    }
    out + "\n" + S::NOTES + "\n"
}

/// A ratio in a table: median, least and most; `1` in the first row.
pub fn by<C, A>(row: &Row<C, A>, first: &Row<C, A>, figure: impl Fn(&A) -> f64) -> String {
    let text = |value: f64| if value.is_finite() { units::digits(value) } else { "-".into() };
    match ratio(&row.rounds, &first.rounds, figure) {
        _ if row.lock == first.lock => "1".into(),
        Some((middle, least, most)) => format!("{} [{} {}]", text(middle), text(least), text(most)),
        None => "-".into(),
    }
}

/// The answers of each lock, one a round; and the signal that came before all rounds had run.
type Answers<A> = (Vec<Vec<A>>, Option<i32>);

/// Runs the trials `specs`, one of each lock, in each of so many rounds. Each round begins with
/// another lock. Each trial is a process of its own, and `what` names it in an error.
fn take<S: Task>(
    runner: &Runner,
    specs: &[S],
    rounds: u32,
    what: impl Fn(usize) -> String,
) -> Result<Answers<S::Answer>> {
    let mut answers: Vec<Vec<S::Answer>> = specs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds as usize {
        for place in 0..specs.len() {
            let turn = (place + round) % specs.len();
            match runner.run(&specs[turn]).with_context(|| what(turn))? {
                Outcome::Done(answer) => answers[turn].push(answer),
                Outcome::Interrupted(signal) => return Ok((answers, Some(signal))),
            }
        }
    }
    Ok((answers, None))
}

/// A figure of a lock by that of another, round by round: the median, the least and the most. None
/// if there is no round.
pub fn ratio<A>(mine: &[A], other: &[A], figure: impl Fn(&A) -> f64) -> Option<(f64, f64, f64)> {
    let ratios: Vec<f64> = mine.iter().zip(other).map(|(a, b)| figure(a) / figure(b)).collect();
    let least = ratios.iter().copied().reduce(f64::min)?;
    Some((median(&ratios), least, ratios.iter().copied().fold(least, f64::max)))
}

/// Where a record will be written.
struct Destination {
    name: &'static str,
    given: Option<PathBuf>,
    folder: PathBuf,
}

impl Destination {
    /// Where it is asked for, or beside the records of the benches, under the name of the program.
    ///
    /// # Errors
    /// If no file can be made there. A file that was asked for has been tried before.
    fn new(name: &'static str, given: Option<PathBuf>) -> Result<Self> {
        let folder = if given.is_some() { PathBuf::new() } else { report::writable_folder()? };
        Ok(Self { name, given, folder })
    }

    /// Writes the record and says where. Returns the exit code: 128 + N after signal N.
    fn write(self, record: &impl Serialize, signal: Option<i32>) -> Result<ExitCode> {
        let ended = if signal.is_some() { Ended::Interrupted } else { Ended::Rounds };
        let own = self.folder.join(report::stem_of(self.name, ended) + ".json");
        let path = self.given.unwrap_or(own);
        std::fs::write(&path, serde_json::to_string_pretty(record)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if signal.is_some() {
            println!("\nThe run was interrupted: what stands above rests on the trials that had ended.");
        }
        println!("\nrecord: {}", path.display());
        Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal as u8)))
    }
}
