//! How far a run is, on standard error: one line that is written over on a terminal, a line for
//! each round elsewhere.

use crate::programs::status_line::StatusLine;
use crate::report::{Cell, clock};
use std::time::Instant;

/// The display.
pub struct Progress {
    start: Instant,
    line: StatusLine,
    trials: usize,
    rounds: u32,
}

impl Progress {
    /// For so many trials a round and so many rounds, as far as one can know.
    pub fn new(trials: usize, rounds: u32) -> Self {
        Self { start: Instant::now(), line: StatusLine::new(), trials, rounds }
    }

    /// A trial is about to start.
    pub fn trial(&self, round: u32, done: usize, lock: &str, cell: Cell) {
        let elapsed = self.start.elapsed().as_secs_f64();
        let all = f64::from(self.rounds.max(round + 1)) * self.trials as f64;
        let part = (f64::from(round) * self.trials as f64 + done as f64) / all;
        let left =
            if part > 0.02 { format!(", {} left", clock(elapsed / part - elapsed)) } else { String::new() };
        let (hold, non_hold) = (cell.workload.hold_ns as f64 / 1e3, cell.workload.non_hold_ns as f64 / 1e3);
        self.line.show(&format!(
            "round {}/{}  trial {}/{}  {}{left}  {lock} x{} ({hold}, {non_hold}) us",
            round + 1,
            self.rounds.max(round + 1),
            done + 1,
            self.trials,
            clock(elapsed),
            cell.threads,
        ));
    }

    /// A round has ended with so many cells not yet known well enough.
    pub fn round(&self, round: u32, open: usize, cells: usize) {
        if !self.line.is_shown() {
            let elapsed = clock(self.start.elapsed().as_secs_f64());
            eprintln!(
                "round {} of about {}, {elapsed} min: {} of {cells} settled",
                round + 1,
                self.rounds,
                cells - open
            );
        }
    }

    /// Clears the line.
    pub fn end(&self) {
        self.line.clear();
    }
}
