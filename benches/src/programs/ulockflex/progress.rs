//! What the program says on stderr while it works.

use super::plan::{Cell, Plan};
use crate::programs::status_line::StatusLine;
use std::time::{Duration, Instant};

/// Counts cells and tells the time. A terminal sees one line that changes with each run, a file one
/// line a cell.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    line: StatusLine,
    locks: usize,
    cells: usize,
    /// Cells that have begun.
    begun: usize,
    cell: String,
}

impl Progress {
    /// The clock starts now.
    pub fn new(plan: &Plan) -> Self {
        Self {
            start: Instant::now(),
            line: StatusLine::new(),
            locks: plan.variants.len(),
            cells: plan.cells.len(),
            begun: 0,
            cell: String::new(),
        }
    }

    /// Says what is coming.
    pub fn announce(&self) {
        eprintln!("ulockflex: cells: {}, rows in each: {}", self.cells, self.locks);
    }

    /// `cell` begins.
    pub fn cell(&mut self, cell: &Cell) {
        self.begun += 1;
        self.cell = format!("cell {} of {}: {cell}", self.begun, self.cells);
        if !self.line.is_shown() {
            eprintln!("ulockflex: {}, after {}", self.cell, rounded(self.start.elapsed()));
        }
    }

    /// A run begins; round 0 warms up.
    pub fn run(&self, lock: &str, round: usize) {
        let elapsed = rounded(self.start.elapsed());
        self.line.show(&format!("ulockflex: {}, run {round} of {lock}, after {elapsed}", self.cell));
    }

    /// Makes room for a row of the table on the same terminal.
    pub fn clear(&self) {
        self.line.clear();
    }
}

/// A length of time as one says it.
fn rounded(time: Duration) -> String {
    match time.as_secs_f64().round() {
        seconds if seconds < 120.0 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds / 60.0).round()),
    }
}
