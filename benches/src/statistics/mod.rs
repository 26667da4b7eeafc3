//! The statistics of the reports. What each says about a small sample is part of its documentation.

pub mod random;
pub mod rounds;

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

pub(crate) fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_and_spread() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
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

    /// From tables: some degrees of freedom, and the normal distribution.
    #[test]
    fn quantiles_of_student() {
        let known = [(1, 12.706), (30, 2.042), (31, 2.0395), (60, 2.0003), (120, 1.9799), (1_000_000, 1.96)];
        for (degrees, t) in known {
            assert!((student_t(degrees) - t).abs() < 5e-4, "{degrees}: {}", student_t(degrees));
        }
    }
}
