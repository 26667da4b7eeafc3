//! Ratios of paired rounds.
//!
//! A round runs every subject once. So the ratio of two subjects within a round does not change
//! when the machine becomes slower from one round to the next. The interval is that of the sign
//! test: it assumes nothing about the distribution.

/// The median of the ratios, and an interval for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The probability that such an interval contains the median. It is less than 0.95 with fewer
    /// than six rounds.
    pub coverage: f64,
}

impl Ratio {
    /// `None` without a pair.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let mut ratios: Vec<f64> = pairs.iter().map(|&(ours, theirs)| ours / theirs).collect();
        ratios.retain(|ratio| ratio.is_finite());
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len();
        let median = median(&ratios)?;
        // Cut as many from both ends as the coverage allows.
        let cut = (0..count.div_ceil(2)).rev().find(|&cut| coverage(count, cut) >= 0.95).unwrap_or(0);
        Some(Self { median, low: ratios[cut], high: ratios[count - 1 - cut], coverage: coverage(count, cut) })
    }

    /// Whether the interval says that the two differ.
    pub fn differs(&self) -> bool {
        self.coverage >= 0.95 && (self.low > 1.0 || self.high < 1.0)
    }
}

/// The probability that the median lies between the values that are left when `cut` are cut from
/// both ends of `count`.
fn coverage(count: usize, cut: usize) -> f64 {
    let mut binomial = 1.0;
    let mut outside = 0.0;
    for k in 0..=cut {
        outside += binomial;
        binomial *= (count - k) as f64 / (k + 1) as f64;
    }
    1.0 - 2.0 * outside / 2f64.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

/// The median of sorted values.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The median of values in any order.
pub fn median_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    median(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_six_rounds_is_their_range() {
        let pairs = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5].map(|ratio| (ratio * 10.0, 10.0));
        let ratio = Ratio::of(&pairs).unwrap();
        assert!((ratio.median - 1.25).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.low - 1.0).abs() < 1e-9 && (ratio.high - 1.5).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.coverage - 0.96875).abs() < 1e-9, "{ratio:?}");
        assert!(!ratio.differs());
    }

    #[test]
    fn more_rounds_cut_the_extremes() {
        let pairs: Vec<_> = (0..20).map(|nth| (100.0 + f64::from(nth), 50.0)).collect();
        let ratio = Ratio::of(&pairs).unwrap();
        // The textbook: of 20 values, the 6th and the 15th cover with 0.9586.
        assert!((ratio.low - 2.1).abs() < 1e-9 && (ratio.high - 2.28).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.coverage - 0.9586).abs() < 1e-4, "{ratio:?}");
        assert!(ratio.differs());
    }

    #[test]
    fn few_rounds_say_how_little_they_cover() {
        assert_eq!(Ratio::of(&[]), None);
        let ratio = Ratio::of(&[(2.0, 1.0), (4.0, 1.0)]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high, ratio.coverage), (3.0, 2.0, 4.0, 0.5));
        assert!(!ratio.differs());
        assert!(Ratio::of(&[(1.0, 0.0)]).is_none());
    }

    #[test]
    fn medians() {
        assert_eq!(median_of([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of([4.0, 1.0]), Some(2.5));
        assert_eq!(median_of([]), None);
    }
}
