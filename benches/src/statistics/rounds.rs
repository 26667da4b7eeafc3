//! Figures over rounds: a value with its interval, two modes, and ratios.
//!
//! - A rate is the geometric mean over rounds, with the t interval of its logarithm.
//! - A rate whose best round is more than twice its worst has **two modes**: queue locks convoy or
//!   do not, and a virtual machine places its CPUs near or far. Both modes are given and no mean.
//! - A **ratio** is taken inside a round, between trials that ran minutes apart at most. Ratios are
//!   averaged geometrically over rounds, with the t interval of their logarithms.
//! - Other figures are medians, with the interval that order statistics give without any
//!   assumption. Under six rounds there is only a **range**, which covers 75 % with three. It
//!   supports no verdict.

use super::{geometric_mean, logarithms, mean, median, standard_deviation, student_t};
use std::cmp::Ordering;

/// Rounds from which agreement of all rounds is a verdict (2 * 0.5^6 < 0.05).
pub const ENOUGH_ROUNDS: usize = 6;

/// A value and its 95 % interval; one round has no interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether that is a range, which covers less than 95 %.
    pub is_range: bool,
}

/// A ratio, or a figure that is judged as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean over rounds; the median if one of the two has two modes.
    pub value: f64,
    /// 95 % interval, or the range of all rounds.
    pub interval: Option<(f64, f64)>,
    /// Rounds in which both ran.
    pub rounds: usize,
    /// Whether the interval is a range: one of the two has two modes, or it is the median of few
    /// rounds.
    pub is_range: bool,
}

impl Ratio {
    /// Whether it is greater than 1, or less: equal if neither can be said. The interval contains
    /// 1, or there is none, or it is a range of too few rounds.
    pub fn verdict(&self) -> Ordering {
        match self.interval.filter(|_| self.is_enough()) {
            Some((low, _)) if low > 1.0 => Ordering::Greater,
            Some((_, high)) if high < 1.0 => Ordering::Less,
            _ => Ordering::Equal,
        }
    }

    /// Whether agreement of all rounds is a verdict.
    pub fn is_enough(&self) -> bool {
        !self.is_range || self.rounds >= ENOUGH_ROUNDS
    }
}

/// Geometric mean and the t interval of the logarithm.
pub fn log_t(values: &[f64]) -> Estimate {
    let (n, logs) = (values.len(), logarithms(values));
    let mid = mean(&logs);
    let interval = (n > 1).then(|| {
        let half = student_t(n - 1) * standard_deviation(&logs) / (n as f64).sqrt();
        ((mid - half).exp(), (mid + half).exp())
    });
    Estimate { value: geometric_mean(values), interval, is_range: false }
}

/// The two modes, if the largest value is more than twice the smallest. They part at the widest gap
/// between neighbours on a logarithmic scale.
pub fn modes(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |i: &usize| sorted[*i] / sorted[i - 1];
    let cut = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (slow, fast) = sorted.split_at(cut);
    (fast[fast.len() - 1] > 2.0 * slow[0]).then(|| (geometric_mean(slow), geometric_mean(fast)))
}

/// A ratio with its interval over rounds.
pub fn mean_ratio(values: &[f64]) -> Option<Ratio> {
    let (rounds, Estimate { value, interval, .. }) = (values.len(), log_t(values));
    (rounds > 0).then_some(Ratio { value, interval, rounds, is_range: false })
}

/// A ratio of what has two modes: its range.
pub fn range_ratio(values: &[f64]) -> Option<Ratio> {
    let range = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &v| (low.min(v), high.max(v)));
    let (value, rounds) = (median(values), values.len());
    (rounds > 0).then_some(Ratio { value, interval: Some(range), rounds, is_range: true })
}

/// Median and the order-statistics interval with at least 95 % coverage, or the range of fewer than
/// six values.
pub fn middle(values: &[f64]) -> Estimate {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // The interval from the k-th smallest to the k-th greatest misses the median with probability
    // 2 * P(Binomial(n, 1/2) < k); take the greatest k that keeps this under 5 %.
    let (mut k, mut term, mut tail) = (0, 0.5_f64.powi(n as i32), 0.0);
    while k < n / 2 && 2.0 * (tail + term) <= 0.05 {
        tail += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    let cut = k.saturating_sub(1);
    let interval = (n > 1).then(|| (sorted[cut], sorted[n - 1 - cut]));
    Estimate { value: median(values), interval, is_range: n < ENOUGH_ROUNDS }
}

#[cfg(test)]
mod tests {
    use super::super::random::Rng;
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn a_mean_has_an_interval_of_students_distribution() {
        let Estimate { value, interval: Some((low, high)), .. } = log_t(&[1.0, 10.0, 100.0]) else {
            panic!()
        };
        // 4.303 / sqrt(3) decades to either side.
        assert!(
            close(value, 10.0) && close((high / value).log10(), 2.4844) && close(value / low, high / value)
        );
        assert_eq!((log_t(&[7.0]).interval, log_t(&[]).interval), (None, None));
    }

    #[test]
    fn ratios_have_an_interval_and_a_verdict() {
        let verdict = |ratios: &[f64]| mean_ratio(ratios).unwrap().verdict();
        assert_eq!(verdict(&[2.0; 6]), Ordering::Greater);
        assert_eq!(verdict(&[0.5, 0.51, 0.49]), Ordering::Less);
        assert_eq!([verdict(&[2.0]), verdict(&[0.9, 1.2, 1.1])], [Ordering::Equal; 2]);
        // All rounds must agree where there are two modes, and there must be enough of them.
        let verdict = |ratios: &[f64]| range_ratio(ratios).unwrap().verdict();
        assert_eq!(verdict(&[2.0; 6]), Ordering::Greater);
        assert_eq!([verdict(&[2.0; 5]), verdict(&[0.9, 2.0, 2.0, 2.0, 2.0, 2.0])], [Ordering::Equal; 2]);
        assert_eq!((mean_ratio(&[]), range_ratio(&[])), (None, None));
    }

    #[test]
    fn rounds_have_modes_and_a_spread() {
        let (low, high) = modes(&[58e3, 5.6e6, 60e3]).unwrap();
        assert!(close(low, (58e3_f64 * 60e3).sqrt()) && close(high, 5.6e6), "{low} {high}");
        assert_eq!((modes(&[10.0, 12.0, 19.0]), modes(&[1.0]), modes(&[])), (None, None, None));
        // From tables of the sign test: of 8 values the 1st and the 8th, of 9 the 2nd and the 8th,
        // of 20 the 6th and the 15th.
        let known = [
            (0, 0.0, None),
            (1, 1.0, None),
            (3, 2.0, Some((1.0, 3.0))),
            (8, 4.5, Some((1.0, 8.0))),
            (9, 5.0, Some((2.0, 8.0))),
            (20, 10.5, Some((6.0, 15.0))),
        ];
        for (n, value, interval) in known {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(middle(&values), Estimate { value, interval, is_range: n < 6 });
        }
    }

    /// Samples of logarithms that are normally distributed: the sum of twelve uniform numbers.
    #[test]
    fn an_interval_of_95_per_cent_covers_as_much() {
        const SAMPLES: usize = 4_000;
        let mut rng = Rng::new(1);
        let mut uniform = || rng.bits() as f64 / u64::MAX as f64;
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        for rounds in [3, 6, 9, 13] {
            let mut covers = || {
                let ratios: Vec<f64> = (0..rounds).map(|_| (normal() / 10.0).exp()).collect();
                let (low, high) = mean_ratio(&ratios).unwrap().interval.unwrap();
                low <= 1.0 && high >= 1.0
            };
            let part = (0..SAMPLES).filter(|_| covers()).count() as f64 / SAMPLES as f64;
            // Three standard deviations of such a part are 1 %.
            assert!((0.94..0.96).contains(&part), "{rounds} rounds: {part}");
        }
    }
}
