//! How far a run is, on standard error: one line that is written over on a terminal, a line for
//! each round elsewhere.

use super::status_line::StatusLine;
use crate::report::clock;
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

    /// A trial of `what` is about to start.
    pub fn trial(&self, round: u32, done: usize, what: &str) {
        let elapsed = self.start.elapsed().as_secs_f64();
        let rounds = self.rounds.max(round + 1);
        let all = f64::from(rounds) * self.trials as f64;
        let part = (f64::from(round) * self.trials as f64 + done as f64) / all;
        let left =
            if part > 0.02 { format!(", {} left", clock(elapsed / part - elapsed)) } else { String::new() };
        self.line.show(&format!(
            "round {}/{rounds}  trial {}/{}  {}{left}  {what}",
            round + 1,
            done + 1,
            self.trials,
            clock(elapsed)
        ));
    }

    /// A round has ended, of so many; `note` is what is to be said of it.
    pub fn round(&self, round: u32, of: &str, note: &str) {
        if !self.line.is_shown() {
            let elapsed = clock(self.start.elapsed().as_secs_f64());
            eprintln!("round {} of {of}, {elapsed} min{note}", round + 1);
        }
    }

    /// Clears the line.
    pub fn end(&self) {
        self.line.clear();
    }
}
