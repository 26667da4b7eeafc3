//! How far the audit of the orderings has come: the verdicts that belong to the present code.

use super::audit::Store;
use super::exec::Verdict;
use super::weaken::{self, Placed};
use crate::workspace::Workspace;
use serde::{Deserialize, Serialize};

/// The numbers of weakened orderings by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// A model reports them.
    pub caught: usize,
    /// No model reports them in time.
    pub survived: usize,
    /// A comment says why no model can report them.
    pub explained: usize,
    /// They were not run, or the code has changed since the run.
    pub unknown: usize,
}

impl Standing {
    /// How many of the unexplained ones were run.
    pub fn run(&self) -> usize {
        self.caught + self.survived
    }

    /// The percentage of caught orderings among the orderings that were run. None if none was run.
    pub fn score(&self) -> Option<f64> {
        (self.run() > 0).then(|| percent(self.caught, self.run()))
    }

    /// The percentage of orderings that were run among the unexplained ones.
    pub fn coverage(&self) -> f64 {
        match self.run() + self.unknown {
            0 => 100.0,
            all => percent(self.run(), all),
        }
    }
}

/// Reads the records of this workspace. None if there are none.
///
/// # Errors
/// If an audit runs at the moment, or a file cannot be read.
pub fn standing(workspace: &Workspace) -> anyhow::Result<Option<Standing>> {
    if !workspace.target().join("mutants/results.jsonl").is_file() {
        return Ok(None);
    }
    let sites = weaken::load(workspace)?.0;
    let weakenings: Vec<_> = sites.iter().flat_map(Placed::weakenings).collect();
    let store = Store::open(workspace, false)?;
    let (pending, rows) = weaken::pending(&store, &weakenings, None, false);
    let mut standing = Standing { unknown: pending.len(), ..Standing::default() };
    for row in rows {
        *match row.verdict {
            Verdict::Caught => &mut standing.caught,
            Verdict::Explained => &mut standing.explained,
            Verdict::Survived | Verdict::NotReached | Verdict::OutOfTime => &mut standing.survived,
            _ => &mut standing.unknown,
        } += 1;
    }
    Ok((standing.run() > 0).then_some(standing))
}

fn percent(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_of_what_was_run_and_the_coverage_of_what_should_be() {
        let half = Standing { caught: 3, survived: 1, explained: 9, unknown: 4 };
        assert_eq!((half.score(), half.coverage()), (Some(75.0), 50.0));
        let none = Standing { unknown: 4, ..Standing::default() };
        assert_eq!((none.score(), none.coverage()), (None, 0.0));
    }
}
