//! One execution of the program: cell by cell, the locks of a cell in turn.

use super::cli::Order;
use super::plan::{Cell, Plan, Purpose};
use super::progress::Progress;
use super::row::{Row, Series};
use super::table;
use crate::run::child::{Outcome, Runner};
use crate::run::machine;
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::process::ExitCode;

/// What is measured, and what has come out of it so far.
pub struct Session {
    plan: Plan,
    notes: Vec<String>,
    keeper: Runner,
    progress: Progress,
    /// Whether a row came to nothing.
    failed: bool,
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

impl Session {
    /// Prepares what `order` asks for.
    pub fn start(order: Order) -> Result<Self> {
        let Order { plan, notes } = order;
        let (progress, keeper) = (Progress::new(&plan), Runner::new()?);
        Ok(Self { plan, notes, keeper, progress, failed: false })
    }

    /// Measures every cell, and prints its rows as they are known.
    pub fn measure(mut self) -> Result<ExitCode> {
        for note in &self.notes {
            eprintln!("note: {note}");
        }
        let stop = self.table().err();
        self.progress.clear();
        match stop {
            None | Some(Stop::Unread) if !self.failed => Ok(ExitCode::SUCCESS),
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
                    Ok(row) => table::row(&row),
                    Err(reason) => {
                        self.failed = true;
                        table::failure(&self.plan, &cell, &variant, &reason)
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
}
