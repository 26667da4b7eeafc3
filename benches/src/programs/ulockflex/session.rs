//! One execution of the program: cell by cell, the locks of a cell in turn.

use super::cli::Order;
use super::plan::{Cell, Plan, Purpose, Variant, children_are};
use super::progress::Progress;
use super::row::{Row, Series};
use super::table;
use crate::run::child::{Outcome, Runner};
use crate::run::machine::{self, Machine};
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What is measured, and what has come out of it so far.
pub struct Session {
    plan: Plan,
    notes: Vec<String>,
    json: Option<PathBuf>,
    keeper: Runner,
    progress: Progress,
    rows: Vec<Row>,
    failures: Vec<Failure>,
}

/// A row that came to nothing.
#[derive(Debug, Serialize)]
struct Failure {
    children: u32,
    non_hold_ns: u64,
    hold_ns: u64,
    lock: &'static str,
    read_share: u8,
    reason: String,
}

impl Failure {
    fn new(cell: &Cell, variant: &Variant, reason: String) -> Self {
        Self {
            children: cell.workers.count(),
            non_hold_ns: cell.non_hold_ns,
            hold_ns: cell.hold_ns,
            lock: variant.entry.name,
            read_share: variant.read_share,
            reason,
        }
    }
}

/// Why a session ends before its last cell.
enum Stop {
    /// This signal came.
    Signal(i32),
    /// No reader of the table is left.
    Unread,
    /// There is no sense in going on.
    Error(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Error(error)
    }
}

/// The JSON file.
#[derive(Serialize)]
struct Report<'a> {
    program: &'static str,
    version: &'static str,
    command: Vec<String>,
    machine: Machine,
    children_are: &'static str,
    plan: &'a Plan,
    complete: bool,
    rows: &'a [Row],
    failures: &'a [Failure],
}

impl Session {
    /// Prepares what `order` asks for.
    pub fn start(order: Order) -> Result<Self> {
        let Order { plan, json, notes } = order;
        let (progress, keeper) = (Progress::new(&plan), Runner::new()?);
        Ok(Self { plan, notes, json, keeper, progress, rows: Vec::new(), failures: Vec::new() })
    }

    /// Measures every cell, prints its rows as they are known, and writes the JSON file.
    pub fn measure(mut self) -> Result<ExitCode> {
        for note in &self.notes {
            eprintln!("note: {note}");
        }
        let stop = self.table().err();
        self.progress.clear();
        self.write_json(stop.is_none())?;
        match stop {
            None | Some(Stop::Unread) if self.failures.is_empty() => Ok(ExitCode::SUCCESS),
            None | Some(Stop::Unread) => Ok(ExitCode::FAILURE),
            Some(Stop::Signal(signal)) => {
                eprintln!("ulockflex: ended by signal {signal}; what is printed is complete");
                Ok(ExitCode::from(128 + signal as u8))
            }
            Some(Stop::Error(error)) => Err(error),
        }
    }

    fn table(&mut self) -> Result<(), Stop> {
        self.print(&table::opening(&self.plan, &machine::describe()))?;
        self.progress.announce();
        for cell in self.plan.cells.clone() {
            self.progress.cell(&cell);
            let all = self.cell(&cell)?;
            self.progress.clear();
            for series in all {
                let variant = series.variant;
                let line = match Row::new(&self.plan, &cell, series) {
                    Ok(row) => {
                        let line = table::row(&row);
                        self.rows.push(row);
                        line
                    }
                    Err(reason) => {
                        let line = table::failure(&self.plan, &cell, &variant, &reason);
                        self.failures.push(Failure::new(&cell, &variant, reason));
                        line
                    }
                };
                self.print(&line)?;
            }
            self.print("")?;
        }
        Ok(())
    }

    /// Runs the locks of a cell in turn: a round to warm up, rounds that count until every row has
    /// settled, and a closer look where one is needed.
    fn cell(&mut self, cell: &Cell) -> Result<Vec<Series>, Stop> {
        let mut all: Vec<_> = self.plan.variants.iter().copied().map(Series::new).collect();
        let warm_up = std::iter::once(Purpose::WarmUp);
        let counted = std::iter::repeat_n(Purpose::Count, self.plan.max_runs);
        for (round, purpose) in warm_up.chain(counted).chain([Purpose::CloseLook]).enumerate() {
            for series in &mut all {
                let wanted = series.failed.is_none()
                    && match purpose {
                        Purpose::WarmUp => true,
                        Purpose::Count => !series.settled(&self.plan),
                        Purpose::CloseLook => self.plan.close_look(cell, &series.variant),
                    };
                if !wanted {
                    continue;
                }
                let spec = self.plan.spec(cell, &series.variant, purpose, round);
                self.progress.run(&spec.lock, round);
                match self.keeper.run(&spec) {
                    Ok(Outcome::Interrupted(signal)) => return Err(Stop::Signal(signal)),
                    Ok(Outcome::Done(result)) => series.take(purpose, result),
                    Err(error) => series.failed = Some(format!("{error:#}")),
                }
            }
        }
        Ok(all)
    }

    fn print(&self, text: &str) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Stop::Unread),
            other => Ok(other.context("cannot print the table")?),
        }
    }

    fn write_json(&self, complete: bool) -> Result<()> {
        let Some(file) = &self.json else { return Ok(()) };
        let report = Report {
            program: "ulockflex",
            version: env!("CARGO_PKG_VERSION"),
            command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            machine: machine::describe(),
            children_are: children_are(self.plan.cells[0].workers),
            plan: &self.plan,
            complete,
            rows: &self.rows,
            failures: &self.failures,
        };
        let text = serde_json::to_string(&report)? + "\n";
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }
}
