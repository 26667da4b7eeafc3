//! From trials to verdicts.
//!
//! A ratio is taken inside a round and averaged over rounds geometrically; which of several peers is the best is
//! decided over all rounds. The interval is that of `scaling`: a bootstrap over rounds, under six rounds the wider t
//! interval. A promise *holds* if the whole interval keeps the bound, *falls short* if all of it is beyond, and in
//! between there is no verdict. Where one of the two rates has two modes (the best round more than twice the worst),
//! both are shown, the ratio is a range, and a verdict needs six rounds that agree.
//!
//! A figure by itself is the median over rounds, with the interval of order statistics: the whole range under six.

use super::list::{Bound, Claim, Promise, Subject};
use super::task::{Figure, Trial};
use crate::report::{ENOUGH_ROUNDS, Level, Spread, log_t, mean_ratio, modes, range_ratio};
use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// There is no such lock yet.
    NotBuilt,
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
            Self::NotBuilt => "not built",
            Self::NoData => "no data",
        })
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The lock.
    pub lock: String,
    /// Its figure: geometric mean of a rate, median of anything else; of the longest wait the longest.
    pub value: f64,
    /// If it has two modes, slower and faster; then `value` is in no trial.
    pub modes: Option<(Level, Level)>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The ratio, or the figure.
    pub value: f64,
    /// Its interval; one round has none.
    pub interval: Option<(f64, f64)>,
    /// Rounds that count.
    pub rounds: usize,
    /// Whether the value is the median of a range over two modes.
    pub two_modes: bool,
    /// The lock.
    pub mine: Side,
    /// What it is compared with.
    pub other: Option<Side>,
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
pub fn judge(promise: &Promise, built: bool, trials: &[Trial]) -> Row {
    let measured = if built { measure(promise, trials) } else { None };
    let (verdict, reason) = match (&measured, promise.obstacle) {
        _ if !built => (Verdict::NotBuilt, Some(format!("there is no lock '{}' yet", promise.lock))),
        (None, Some(obstacle)) => (Verdict::NoData, Some(obstacle.to_owned())),
        (None, None) => (Verdict::NoData, Some("no round was completed".to_owned())),
        (Some(measured), _) => (verdict(promise.bound, measured), None),
    };
    Row {
        lock: promise.lock.to_owned(),
        name: promise.name.clone(),
        what: promise.what.clone(),
        figure: promise.figure,
        ratio: matches!(promise.claim, Claim::Ratio { .. }),
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
        _ => Verdict::None,
    }
}

fn measure(promise: &Promise, trials: &[Trial]) -> Option<Measured> {
    let series = |subject: &Subject| series(trials, subject, promise.figure);
    match &promise.claim {
        Claim::Value(subject) => {
            let values = values(&series(subject));
            if values.is_empty() {
                return None;
            }
            let spread = Spread::of(&values);
            Some(Measured {
                value: spread.median,
                interval: (values.len() > 1).then_some((spread.low, spread.high)),
                rounds: values.len(),
                two_modes: false,
                mine: side(subject.lock, promise.figure, &values),
                other: None,
            })
        }
        Claim::Ratio { mine, others } => {
            let above = series(mine);
            // All peers or no comparison: the best of those that happened to run is not the best.
            let below: Vec<(&Subject, Vec<(u32, f64)>)> =
                others.iter().map(|other| (other, series(other))).collect();
            if above.is_empty() || below.iter().any(|(_, values)| values.is_empty()) {
                return None;
            }
            let (best, below) =
                below.into_iter().max_by(|(_, a), (_, b)| typical(a).total_cmp(&typical(b)))?;
            let pairs = above.iter().filter_map(|&(round, mine)| {
                let (_, other) = below.iter().find(|(other, _)| *other == round)?;
                Some((mine, mine / other))
            });
            let ratios: Vec<f64> = pairs.map(|(_, ratio)| ratio).collect();
            let mine = side(mine.lock, promise.figure, &values(&above));
            let other = side(best.lock, promise.figure, &values(&below));
            let two_modes = mine.modes.is_some() || other.modes.is_some();
            let ratio = if two_modes { range_ratio(&ratios) } else { mean_ratio(&ratios) }?;
            Some(Measured {
                value: ratio.value,
                interval: ratio.interval,
                rounds: ratio.rounds,
                two_modes,
                mine,
                other: Some(other),
            })
        }
    }
}

/// The figure of a subject, by round.
fn series(trials: &[Trial], subject: &Subject, figure: Figure) -> Vec<(u32, f64)> {
    let of_cell = trials.iter().filter(|trial| trial.cell == subject.cell);
    of_cell.filter_map(|trial| Some((trial.round, trial.figure(subject.lock, figure)?))).collect()
}

fn values(series: &[(u32, f64)]) -> Vec<f64> {
    series.iter().map(|&(_, value)| value).collect()
}

fn side(lock: &str, figure: Figure, values: &[f64]) -> Side {
    let value = match figure {
        _ if figure.is_rate() => log_t(values).value,
        Figure::WorstWait => values.iter().copied().fold(0.0, f64::max),
        _ => Spread::of(values).median,
    };
    Side { lock: lock.to_owned(), value, modes: if figure.is_rate() { modes(values) } else { None } }
}

/// One number to compare peers by: the mean, or the mode of most rounds.
fn typical(series: &[(u32, f64)]) -> f64 {
    let values = values(series);
    match modes(&values) {
        Some((slow, fast)) if fast.rounds > slow.rounds => fast.per_s,
        Some((slow, _)) => slow.per_s,
        None => log_t(&values).value,
    }
}
