//! How far a run is, on standard error: one line that is written over on a terminal, and elsewhere
//! a line for each tenth of the run.

use super::status_line::StatusLine;
use crate::report::clock;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The display.
pub struct Progress {
    name: &'static str,
    start: Instant,
    line: StatusLine,
    /// How long an interrupted run took, that this one goes on with.
    before: Duration,
    /// Tenths of the run that have a line.
    tenths: Cell<u32>,
}

impl Progress {
    /// Of the program called `name`. If it goes on with a run, that one had done this share of all
    /// in this time.
    pub fn new(name: &'static str, (share, before): (f64, Duration)) -> Self {
        let tenths = Cell::new((10.0 * share) as u32);
        Self { name, start: Instant::now(), line: StatusLine::new(), before, tenths }
    }

    /// A trial of `what` is about to start; so many of all have ended.
    pub fn trial(&self, done: usize, all: usize, what: &str) {
        let (share, elapsed) = (done as f64 / all.max(1) as f64, self.before + self.start.elapsed());
        self.line.show(&format!("{}  trial {}/{all}  {what}", how_far(share, elapsed), done + 1));
        let tenths = (10.0 * share) as u32;
        if !self.line.is_shown() && tenths > self.tenths.get() {
            self.tenths.set(tenths);
            eprintln!("{}: {}", self.name, how_far(share, elapsed));
        }
    }

    /// Clears the line.
    pub fn end(&self) {
        self.line.clear();
    }
}

/// The share done, the time it took, and what is left at that pace.
fn how_far(share: f64, elapsed: Duration) -> String {
    let elapsed = elapsed.as_secs_f64();
    let left =
        if share > 0.02 { format!(", {} left", clock(elapsed / share - elapsed)) } else { String::new() };
    format!("{:.0} % done in {} min{left}", (share * 100.0).floor(), clock(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_pace() {
        assert_eq!(how_far(0.25, Duration::from_secs(60)), "25 % done in 1:00 min, 3:00 left");
        assert_eq!(how_far(0.999, Duration::from_secs(999)), "99 % done in 16:39 min, 0:01 left");
        assert_eq!(how_far(0.01, Duration::from_secs(2)), "1 % done in 0:02 min");
    }
}
