//! The verdict on a run with a mutant.

use super::spec::HANG;
use serde::{Deserialize, Serialize};
use std::fmt;
use xtask::exec::{End, Ran};

/// The verdict of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It failed, and its output contains the specified text.
    Caught,
    /// It passed, as it should: the mutant is sound, or there is no mutant.
    Passes,
    /// It passed, but it should have failed.
    Survived,
    /// It failed, but not as specified.
    Wrong,
    /// It does not compile, not even alone.
    DoesNotCompile,
    /// The filter selects no test.
    NoTest,
    /// The tests do not pass without the mutant.
    NotRun,
    /// It did not end in time.
    OutOfTime,
    /// It was not run: a comment in the source says why no model can report it.
    Explained,
}

impl Verdict {
    /// Whether this is the verdict that was specified.
    pub fn is_as_specified(self) -> bool {
        matches!(self, Self::Caught | Self::Passes | Self::Explained)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caught => "caught",
            Self::Passes => "passes",
            Self::Survived => "SURVIVED",
            Self::Wrong => "WRONG",
            Self::DoesNotCompile => "DOES NOT COMPILE",
            Self::NoTest => "NO TEST",
            Self::NotRun => "NOT RUN",
            Self::OutOfTime => "OUT OF TIME",
            Self::Explained => "explained",
        })
    }
}

/// The verdict on a run. `says` is the text that the output must contain; without it the run must
/// pass.
pub fn judge(ran: &Ran, says: Option<&str>) -> Verdict {
    match (ran.end, says) {
        (End::Passed, _) if ran.tests().passed == 0 => Verdict::NoTest,
        (End::Passed, None) => Verdict::Passes,
        (End::Passed, Some(_)) => Verdict::Survived,
        (End::OutOfTime, Some(HANG)) => Verdict::Caught,
        (End::Failed, Some(says)) if says != HANG && ran.output.contains(says) => Verdict::Caught,
        (End::OutOfTime | End::Failed, _) => Verdict::Wrong,
    }
}
