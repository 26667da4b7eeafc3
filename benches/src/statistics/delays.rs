//! Many delays, and what is said of them.

use hdrhistogram::Histogram;

/// The longest wait a histogram can hold: five minutes. Longer ones count as that long; the maximum
/// is kept exactly.
const LONGEST_WAIT_NS: u64 = 300_000_000_000;

/// Delays in ticks of a clock, within 1 % of the truth; least, greatest and sum exactly.
#[derive(Clone, Debug)]
pub struct Delays {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u64,
}

impl Delays {
    /// None yet.
    pub fn new() -> Self {
        let bounded = Histogram::new_with_bounds(1, LONGEST_WAIT_NS, 2);
        let histogram = bounded.expect("constant bounds are valid");
        Self { histogram, min: u64::MAX, max: 0, sum: 0 }
    }

    /// One more. Does not allocate.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        // The histogram begins at one.
        self.histogram.saturating_record(ticks.max(1));
        self.min = self.min.min(ticks);
        self.max = self.max.max(ticks);
        self.sum += ticks;
    }

    /// Those of another thread as well.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all histograms have one shape");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// What is said of them; nothing of none.
    pub fn delay(&self) -> Option<Delay> {
        let count = self.histogram.len();
        let at = |quantile| self.histogram.value_at_quantile(quantile).clamp(self.min, self.max);
        (count > 0).then(|| Delay {
            count,
            min: self.min,
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        })
    }
}

impl Default for Delays {
    fn default() -> Self {
        Self::new()
    }
}

/// What is said of delays, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Longest.
    pub max: u64,
}
