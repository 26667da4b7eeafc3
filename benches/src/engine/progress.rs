//! What a program says, and how far its run is: on a terminal one line of standard error that is
//! written over, and elsewhere a line for each tenth of the run.

use crate::report::units::clock;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// Says something on standard error. Where that cannot be had, nobody wants to hear it.
pub fn say(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Prints on standard output, and returns the exit code. A reader that closes the pipe has seen
/// enough; any other failure is one, though what was measured is in files.
pub fn print(text: &str) -> ExitCode {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The display of one row's run.
pub struct Progress {
    row: String,
    /// Whether there is a terminal that can write over a line.
    over: bool,
    /// What is planned for after this row, in seconds.
    after_s: f64,
    /// Tenths of the run that have a line; none before the first trial, which may be one of a
    /// resumed run.
    tenths: Option<u32>,
}

impl Progress {
    /// Of a row.
    pub fn new(row: &str, after_s: f64) -> Self {
        let over = stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { row: row.into(), over, after_s, tenths: None }
    }

    /// This share of the row's time is done, it took so long, and `what` comes next.
    pub fn show(&mut self, share: f64, elapsed: Duration, what: &str) {
        let how_far = how_far(share, elapsed.as_secs_f64(), self.after_s);
        let text = format!("{}: {how_far}  {what}", self.row);
        let tenths = (10.0 * share) as u32;
        if self.over {
            // A longer line would be two on a terminal of the usual width.
            self.clear();
            let _ = write!(stderr(), "{text:.79}");
        } else if self.tenths.replace(tenths).is_some_and(|before| before < tenths) {
            say(&text);
        }
    }

    /// Makes room for other output.
    pub fn clear(&self) {
        if self.over {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }
}

/// The share done, the time it took, what is left at that pace, and what is left of everything.
fn how_far(share: f64, elapsed_s: f64, after_s: f64) -> String {
    let mut text = format!("{:.0} % in {}", (share * 100.0).floor(), clock(elapsed_s));
    if share > 0.02 {
        let left_s = elapsed_s / share - elapsed_s;
        text += &format!(", {} left", clock(left_s));
        if after_s > 0.0 {
            text += &format!(" ({} of all)", clock(left_s + after_s));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_pace() {
        assert_eq!(how_far(0.25, 60.0, 0.0), "25 % in 1:00, 3:00 left");
        assert_eq!(how_far(0.999, 999.0, 60.0), "99 % in 16:39, 0:01 left (1:01 of all)");
        assert_eq!(how_far(0.01, 2.0, 60.0), "1 % in 0:02");
    }
}
