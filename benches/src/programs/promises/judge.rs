//! From trials to verdicts.
//!
//! A ratio is taken inside a round and averaged over rounds geometrically; which of several peers
//! is the best is decided over all rounds, by the figure itself. What is possible without a lock is
//! decided in each round, since it is the machine's and not a competitor's. The interval is that of
//! `scaling`: a bootstrap over rounds, under six rounds the wider t interval. A promise *holds* if
//! the whole interval keeps the bound, *falls short* if all of it is beyond, and in between there
//! is no verdict. Where one of the two rates has two modes (the best round more than twice the
//! worst), both are shown, the ratio is a range, and a verdict needs six rounds that agree.
//!
//! A figure by itself is the median over rounds, with the interval of order statistics: the whole
//! range under six.

use super::promise::{Bound, Claim, Promise, Subject};
use crate::programs::harness::comparison::{Measured, Series};
use crate::statistics::rounds::ENOUGH_ROUNDS;
use crate::workloads::cell::Trial;
use crate::workloads::figure::Figure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What stands in place of a lock's name for what is possible without one.
pub const POSSIBLE: &str = "possible";

/// What became of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval keeps the bound.
    Holds,
    /// None of the interval does.
    FallsShort,
    /// The bound is inside the interval, or there are too few rounds for one.
    None,
    /// Nothing was promised.
    Shown,
    /// Nothing was measured.
    NoData,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::FallsShort => "FALLS SHORT",
            Self::None => "no verdict",
            Self::Shown => "-",
            Self::NoData => "no data",
        })
    }
}

/// A promise and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The lock.
    pub lock: String,
    /// As `--only` knows it.
    pub name: String,
    /// In words.
    pub what: String,
    /// What is read off the trials.
    pub figure: Figure,
    /// Whether that is divided by the figure of another.
    pub ratio: bool,
    /// What it must come to.
    pub bound: Bound,
    /// What it came to.
    pub measured: Option<Measured>,
    /// So.
    pub verdict: Verdict,
    /// Why there is nothing, if there is nothing.
    pub reason: Option<String>,
}

/// Judges a promise by the trials there are.
pub fn judge(promise: &Promise, trials: &[Trial]) -> Row {
    let measured = measure(promise, trials);
    let (verdict, reason) = match (&measured, promise.obstacle) {
        (None, Some(obstacle)) => (Verdict::NoData, Some(obstacle.to_owned())),
        (None, None) => (Verdict::NoData, Some("no round was completed".to_owned())),
        (Some(measured), _) => (verdict(promise.bound, measured), None),
    };
    Row {
        lock: promise.lock.to_owned(),
        name: promise.name.clone(),
        what: promise.what.clone(),
        figure: promise.figure,
        ratio: !matches!(promise.claim, Claim::Value(_)),
        bound: promise.bound,
        measured,
        verdict,
        reason,
    }
}

fn verdict(bound: Bound, measured: &Measured) -> Verdict {
    let agree = !measured.two_modes || measured.rounds >= ENOUGH_ROUNDS;
    match (bound, measured.interval) {
        (Bound::Shown, _) => Verdict::Shown,
        (Bound::AtLeast(bound), Some((low, _))) if agree && low >= bound => Verdict::Holds,
        (Bound::AtLeast(bound), Some((_, high))) if agree && high < bound => Verdict::FallsShort,
        (Bound::AtMost(bound), Some((_, high))) if agree && high <= bound => Verdict::Holds,
        (Bound::AtMost(bound), Some((low, _))) if agree && low > bound => Verdict::FallsShort,
        (Bound::Within(most), Some((low, high))) if agree && low >= 1.0 / most && high <= most => {
            Verdict::Holds
        }
        (Bound::Within(most), Some((low, high))) if agree && (low > most || high < 1.0 / most) => {
            Verdict::FallsShort
        }
        _ => Verdict::None,
    }
}

fn measure(promise: &Promise, trials: &[Trial]) -> Option<Measured> {
    let series = |subject: &Subject| Series::new(trials, subject.lock, subject.cell, promise.figure);
    match &promise.claim {
        Claim::Value(subject) => series(subject).measured(),
        Claim::Ratio { mine, others } => {
            let others: Vec<Series<'_>> = others.iter().map(series).collect();
            series(mine).by(Series::best(&others)?)
        }
        Claim::Share { mine, limits } => {
            let limits: Vec<Series<'_>> = limits.iter().map(series).collect();
            series(mine).by(&Series::least(POSSIBLE, promise.figure, &limits))
        }
    }
}
