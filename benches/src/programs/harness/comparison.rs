//! A figure over rounds, and the ratio of two of them.
//!
//! A ratio is taken inside a round and averaged over rounds geometrically. The interval is that of
//! `scaling`: a bootstrap over rounds, under six rounds the wider t interval. Where one of two
//! rates has two modes (the best round more than twice the worst), both are shown, and the ratio is
//! a range.
//!
//! A figure by itself is the median over rounds, with the interval of order statistics: the whole
//! range under six.

use crate::report::units;
use crate::statistics::rounds::{Level, Spread, log_t, mean_ratio, modes, range_ratio};
use crate::workloads::cell::{Cell, Trial};
use crate::workloads::figure::Figure;
use serde::{Deserialize, Serialize};

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The lock.
    pub lock: String,
    /// Its figure: geometric mean of a rate, median of anything else; of the longest of anything
    /// the longest.
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

impl Side {
    /// A rate as tables have it: `a|b` are two modes.
    pub fn rate(&self) -> String {
        match self.modes {
            Some((slow, fast)) => format!("{}|{}", units::rate(slow.per_s), units::rate(fast.per_s)),
            None => units::rate(self.value),
        }
    }
}

impl Measured {
    /// A ratio as tables have it: with its interval, or `{a .. b}`, a range over two modes.
    pub fn ratio(&self) -> String {
        let show = units::fixed;
        match (self.interval, self.two_modes) {
            (Some((low, high)), false) => format!("{} [{} {}]", show(self.value), show(low), show(high)),
            (Some((low, high)), true) => format!("{{{} .. {}}}", show(low), show(high)),
            (None, _) => format!("{} [?]", show(self.value)),
        }
    }
}

/// A figure of a lock in a cell, by round.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    lock: &'a str,
    figure: Figure,
    by_round: Vec<(u32, f64)>,
}

impl<'a> Series<'a> {
    /// What the trials say.
    pub fn new(trials: &[Trial], lock: &'a str, cell: Cell, figure: Figure) -> Self {
        let of_cell = trials.iter().filter(|trial| trial.cell == cell);
        let by_round = of_cell.filter_map(|trial| Some((trial.round, trial.figure(lock, figure)?))).collect();
        Self { lock, figure, by_round }
    }

    /// In each round the least of `limits`, if all of them have that round; called `name`.
    pub fn least(name: &'a str, figure: Figure, limits: &[Series<'_>]) -> Self {
        let rounds = limits.first().map_or(&[][..], |first| &first.by_round);
        let least = |&(round, _): &(u32, f64)| {
            let values = limits.iter().map(|limit| limit.at(round));
            let least = values.reduce(|a, b| Some(a?.min(b?)))??;
            Some((round, least))
        };
        Self { lock: name, figure, by_round: rounds.iter().filter_map(least).collect() }
    }

    fn at(&self, round: u32) -> Option<f64> {
        self.by_round.iter().find(|&&(r, _)| r == round).map(|&(_, value)| value)
    }

    /// Whether there is no round.
    pub fn is_empty(&self) -> bool {
        self.by_round.is_empty()
    }

    /// Round by round.
    pub fn values(&self) -> Vec<f64> {
        self.by_round.iter().map(|&(_, value)| value).collect()
    }

    /// Whose figure it is.
    pub fn lock(&self) -> &'a str {
        self.lock
    }

    /// The best of several: the greatest rate, or the smallest of any other figure. None if one of
    /// them has no round: the best of those that happened to run is not the best.
    pub fn best(several: &[Self]) -> Option<&Self> {
        if several.iter().any(Series::is_empty) {
            return None;
        }
        several.iter().max_by(|a, b| {
            let order = a.typical().total_cmp(&b.typical());
            if a.figure.is_rate() { order } else { order.reverse() }
        })
    }

    /// In one line.
    pub fn side(&self) -> Side {
        let values = self.values();
        let value = match self.figure {
            figure if figure.is_rate() => log_t(&values).value,
            Figure::WorstWait | Figure::MaskedMax | Figure::SlowestRecovery => {
                values.iter().copied().fold(0.0, f64::max)
            }
            _ => Spread::of(&values).median,
        };
        let modes = if self.figure.is_rate() { modes(&values) } else { None };
        Side { lock: self.lock.to_owned(), value, modes }
    }

    /// One number to compare peers by: the mean, or the mode of most rounds.
    pub fn typical(&self) -> f64 {
        let values = self.values();
        match modes(&values) {
            Some((slow, fast)) if fast.rounds > slow.rounds => fast.per_s,
            Some((slow, _)) => slow.per_s,
            None => log_t(&values).value,
        }
    }

    /// The figure by itself.
    pub fn measured(&self) -> Option<Measured> {
        let values = self.values();
        if values.is_empty() {
            return None;
        }
        let spread = Spread::of(&values);
        let (value, interval) = match self.figure {
            // What must never be exceeded is not judged by most rounds.
            Figure::SlowestRecovery => {
                let greatest = values.iter().copied().fold(0.0, f64::max);
                (greatest, (greatest, greatest))
            }
            _ => (spread.median, (spread.low, spread.high)),
        };
        Some(Measured {
            value,
            interval: (values.len() > 1).then_some(interval),
            rounds: values.len(),
            two_modes: false,
            mine: self.side(),
            other: None,
        })
    }

    /// By `other`, in each round that both have.
    pub fn by(&self, other: &Series<'_>) -> Option<Measured> {
        let pairs = self.by_round.iter().filter_map(|&(round, mine)| Some(mine / other.at(round)?));
        let ratios: Vec<f64> = pairs.collect();
        let [mine, other] = [self.side(), other.side()];
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
