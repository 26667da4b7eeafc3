//! The statistics of the reports. What each says about a small sample is part of its documentation.

pub mod delays;
pub mod random;
pub mod rounds;

use random::Rng;
use serde::{Deserialize, Serialize};

/// An estimate and the 95 % confidence interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half the width as a share of the estimate: 0.05 is "within 5 %".
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.mid.abs()
    }
}

/// Arithmetic mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Geometric mean of positive values; 0 of nothing.
pub fn geometric_mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { mean(&logarithms(values)).exp() }
}

/// Median; the mean of the two in the middle if their number is even; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Standard deviation of a sample (divided by n - 1); 0 of fewer than two.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { (squares(values) / (values.len() - 1) as f64).sqrt() }
}

/// Coefficient of variation of the workers' counts: standard deviation by mean. The workers are the
/// whole population, not a sample of one (divided by n). 0 is perfectly fair.
pub fn cov(counts: &[u64]) -> f64 {
    let values = floats(counts);
    let mean = mean(&values);
    if mean == 0.0 { 0.0 } else { (squares(&values) / values.len() as f64).sqrt() / mean }
}

/// The smallest and the largest count as multiples of a fair share: (1, 1) is perfectly fair.
pub fn shares(counts: &[u64]) -> (f64, f64) {
    let mean = mean(&floats(counts));
    match (counts.iter().min(), counts.iter().max()) {
        (Some(&min), Some(&max)) if mean > 0.0 => (min as f64 / mean, max as f64 / mean),
        _ => (1.0, 1.0),
    }
}

/// Student's 95 % confidence interval of the mean. Of fewer than two values it is infinitely wide.
pub fn mean_interval(values: &[f64]) -> Interval {
    let (n, mid) = (values.len(), mean(values));
    let half = match n {
        0 | 1 => f64::INFINITY,
        _ => student_t(n - 1) * standard_deviation(values) / (n as f64).sqrt(),
    };
    Interval { low: mid - half, mid, high: mid + half }
}

/// Student's 95 % confidence interval of the geometric mean: computed of the logarithms, as fits
/// ratios and rates.
pub fn geometric_mean_interval(values: &[f64]) -> Interval {
    let interval = mean_interval(&logarithms(values));
    Interval { low: interval.low.exp(), mid: interval.mid.exp(), high: interval.high.exp() }
}

/// Geometric mean of ratios with a 95 % percentile bootstrap interval over them. `seed` makes it
/// reproducible.
fn bootstrap(ratios: &[f64], seed: u64) -> Interval {
    const RESAMPLES: usize = 2000;
    let (logs, mut rng) = (logarithms(ratios), Rng::new(seed));
    let mut resample = || {
        let sum: f64 = logs.iter().map(|_| logs[rng.below(logs.len() as u64) as usize]).sum();
        sum / logs.len() as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    means.sort_by(f64::total_cmp);
    let [low, high] = [RESAMPLES / 40, RESAMPLES - 1 - RESAMPLES / 40].map(|rank| means[rank].exp());
    Interval { low, mid: geometric_mean(ratios), high }
}

/// Whether repeated measurements have two modes: the largest is more than twice the smallest. Then
/// no mean is quoted.
pub fn bimodal(values: &[f64]) -> bool {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    values.len() > 1 && max > 2.0 * min
}

/// Two-sided 95 % quantile of Student's distribution.
pub fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        // The first two terms of the Cornish-Fisher expansion around the normal quantile; exact to
        // three digits here.
        _ => {
            const Z: f64 = 1.959_964;
            let n = degrees as f64;
            Z + (Z.powi(3) + Z) / (4.0 * n) + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * n * n)
        }
    }
}

fn floats(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|&count| count as f64).collect()
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::rounds::{Spread, Verdict, mean_ratio, modes, range_ratio};
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1e-9)
    }

    #[test]
    fn location_and_spread() {
        // The textbook sample with mean 5 and population deviation 2.
        let sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!((mean(&sample), median(&sample), median(&[3.0, 1.0, 2.0])), (5.0, 4.5, 2.0));
        assert!(close(standard_deviation(&sample), (32.0f64 / 7.0).sqrt()));
        assert!(close(geometric_mean(&[1.0, 10.0, 100.0]), 10.0));
        let nothing = [mean(&[]), median(&[]), standard_deviation(&[1.0]), geometric_mean(&[])];
        assert_eq!(nothing, [0.0; 4]);
        assert!(close(cov(&[2, 4, 4, 4, 5, 5, 7, 9]), 0.4));
        assert_eq!((cov(&[7, 7, 7]), cov(&[0, 0])), (0.0, 0.0));
        assert_eq!((shares(&[5, 10, 15]), shares(&[])), ((0.5, 1.5), (1.0, 1.0)));
    }

    #[test]
    fn intervals_of_student() {
        // From tables: 40, 60 and 120 degrees of freedom, and the normal distribution.
        for (degrees, t) in [
            (1, 12.706),
            (30, 2.042),
            (31, 2.0395),
            (40, 2.0211),
            (60, 2.0003),
            (120, 1.9799),
            (1_000_000, 1.96),
        ] {
            assert!((student_t(degrees) - t).abs() < 5e-4, "{degrees}: {}", student_t(degrees));
        }
        let interval = mean_interval(&[9.0, 10.0, 11.0, 10.0, 10.0]);
        // 2.776 * 0.7071 / sqrt(5) = 0.8779
        assert!(close(interval.low, 10.0 - 0.8779) && close(interval.high, 10.0 + 0.8779));
        assert!(close(interval.relative_half_width(), 0.08779));
        assert_eq!(mean_interval(&[1.0]).relative_half_width(), f64::INFINITY);
        let Interval { low, mid, high } = geometric_mean_interval(&[1.0, 10.0, 100.0]);
        assert!(close(mid, 10.0) && close(mid / low, high / mid));
    }

    #[test]
    fn ratios_have_an_interval_and_a_verdict() {
        // One of four says 16: resampling finds means from 1 to 16, mostly between.
        let Interval { low, mid, high } = bootstrap(&[1.0, 1.0, 1.0, 16.0], 1);
        assert!(close(mid, 2.0) && close(low, 1.0) && close(high, 8.0), "{low} {mid} {high}");
        let verdict = |ratios: &[f64]| mean_ratio(ratios).unwrap().verdict();
        assert_eq!(verdict(&[2.0; 6]), Verdict::Faster);
        assert_eq!(verdict(&[0.5, 0.51, 0.49]), Verdict::Slower);
        assert_eq!([verdict(&[2.0]), verdict(&[0.9, 1.2, 1.1])], [Verdict::None; 2]);
        // All rounds must agree where there are two modes, and there must be enough of them.
        let verdict = |ratios: &[f64]| range_ratio(ratios).unwrap().verdict();
        assert_eq!(verdict(&[2.0; 6]), Verdict::Faster);
        assert_eq!([verdict(&[2.0; 5]), verdict(&[0.9, 2.0, 2.0, 2.0, 2.0, 2.0])], [Verdict::TwoModes; 2]);
        assert_eq!((mean_ratio(&[]), range_ratio(&[])), (None, None));
    }

    #[test]
    fn rounds_have_modes_and_a_spread() {
        let (low, high) = modes(&[58e3, 5.6e6, 60e3]).unwrap();
        assert_eq!((low.rounds, high.rounds, close(high.per_s, 5.6e6)), (2, 1, true));
        assert!(modes(&[10.0, 12.0, 19.0]).is_none() && !bimodal(&[1.0]) && !bimodal(&[]));
        // From tables of the sign test: of 8 values the 1st and the 8th, of 9 the 2nd and the 8th.
        let spread = |n: u32| Spread::of(&(1..=n).map(f64::from).collect::<Vec<_>>());
        assert_eq!(spread(8), Spread { median: 4.5, low: 1.0, high: 8.0 });
        assert_eq!(spread(9), Spread { median: 5.0, low: 2.0, high: 8.0 });
        assert_eq!((spread(3).low, spread(3).high, Spread::of(&[]).median), (1.0, 3.0, 0.0));
    }
}
