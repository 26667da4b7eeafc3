//! Figures over rounds: a value with its interval, two modes, and ratios.
//!
//! - A rate is the geometric mean over rounds, with the t interval of its logarithm.
//! - A rate whose best round is more than twice its worst has **two modes**: queue locks convoy or
//!   do not, and a virtual machine places its CPUs near or far. Both modes are given and no mean.
//! - A **ratio** is taken inside a round, between trials that ran minutes apart at most. Ratios are
//!   averaged geometrically over rounds. The 95 % interval is a bootstrap over rounds. Under six
//!   rounds a bootstrap cannot reach beyond the few values it has, so the t interval of the
//!   logarithm, which is wider, takes its place.
//! - Other figures are medians, with the interval that order statistics give without any
//!   assumption. Under six rounds that is the whole range, and covers less than 95 %.

use super::{Interval, bimodal, bootstrap, geometric_mean_interval, median};
use serde::{Deserialize, Serialize};

/// Rounds from which a bootstrap is used and agreement of all rounds is a verdict (2 * 0.5^6 <
/// 0.05).
pub const ENOUGH_ROUNDS: usize = 6;

/// Of the bootstrap, so that figures can be computed again to the last digit.
const SEED: u64 = 1;

/// A value and its 95 % interval; one round has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
}

/// One of the two modes of a throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Operations per second.
    pub per_s: f64,
    /// Rounds that ran in this mode.
    pub rounds: usize,
}

/// A ratio of throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean over rounds; the median if one of the two has two modes.
    pub value: f64,
    /// 95 % interval; the whole range if one of the two has two modes.
    pub interval: Option<(f64, f64)>,
    /// Rounds in which both ran.
    pub rounds: usize,
    /// Whether one of the two has two modes.
    pub two_modes: bool,
}

/// What a ratio allows to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More operations than the peer.
    Faster,
    /// Fewer operations than the peer.
    Slower,
    /// The interval contains 1, or there is none.
    None,
    /// Two modes, and not all rounds agree.
    TwoModes,
}

impl Verdict {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::None => "no verdict",
            Verdict::TwoModes => "two modes",
        }
    }
}

impl Ratio {
    /// What may be said.
    pub fn verdict(&self) -> Verdict {
        let agree = !self.two_modes || self.rounds >= ENOUGH_ROUNDS;
        match self.interval {
            Some((low, _)) if agree && low > 1.0 => Verdict::Faster,
            Some((_, high)) if agree && high < 1.0 => Verdict::Slower,
            _ if self.two_modes => Verdict::TwoModes,
            _ => Verdict::None,
        }
    }
}

/// Median over rounds and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Geometric mean and the t interval of the logarithm.
pub fn log_t(values: &[f64]) -> Estimate {
    let Interval { low, mid, high } = geometric_mean_interval(values);
    Estimate { value: mid, interval: (values.len() > 1).then_some((low, high)) }
}

/// The two modes, parted at the widest gap between neighbours on a logarithmic scale.
pub fn modes(values: &[f64]) -> Option<(Level, Level)> {
    if !bimodal(values) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |i: &usize| sorted[*i] / sorted[i - 1];
    let cut = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let mode = |part: &[f64]| Level { per_s: log_t(part).value, rounds: part.len() };
    Some((mode(&sorted[..cut]), mode(&sorted[cut..])))
}

/// A ratio with its interval over rounds.
pub fn mean_ratio(values: &[f64]) -> Option<Ratio> {
    let Estimate { value, mut interval } = log_t(values);
    if values.len() >= ENOUGH_ROUNDS {
        let Interval { low, high, .. } = bootstrap(values, SEED);
        interval = Some((low, high));
    }
    let rounds = values.len();
    (rounds > 0).then_some(Ratio { value, interval, rounds, two_modes: false })
}

/// A ratio of what has two modes: its range.
pub fn range_ratio(values: &[f64]) -> Option<Ratio> {
    let range = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &v| (low.min(v), high.max(v)));
    let (value, rounds) = (median(values), values.len());
    (rounds > 0).then_some(Ratio { value, interval: Some(range), rounds, two_modes: true })
}

impl Spread {
    /// Median and the order-statistics interval with at least 95 % coverage, or the whole range
    /// under six values.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (n, median) = (sorted.len(), median(values));
        if n == 0 {
            return Self { median, low: 0.0, high: 0.0 };
        }
        // The interval from the k-th smallest to the k-th greatest misses the median with
        // probability 2 * P(Binomial(n, 1/2) < k); take the greatest k that keeps this under 5 %.
        let (mut k, mut term, mut tail) = (0, 0.5_f64.powi(n as i32), 0.0);
        while k < n / 2 && 2.0 * (tail + term) <= 0.05 {
            tail += term;
            term *= (n - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let cut = k.saturating_sub(1);
        Self { median, low: sorted[cut], high: sorted[n - 1 - cut] }
    }
}
