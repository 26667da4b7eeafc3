//! Busy work of a known length.
//!
//! Work is counted in iterations of a dependent chain, never against a clock: a holder that is
//! preempted must still do its work when it comes back, or an oversubscribed lock looks better than
//! it is. One iteration is a multiplication and a shift that needs the result of the one before; no
//! compiler or CPU can shorten the chain. It is calibrated once a run, and every trial of that run
//! uses the same constant.

use crate::statistics::random::Rng;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Fewer iterations than this cannot be told from the loop around them.
const LEAST_ITERATIONS: f64 = 8.0;
/// No critical section of a benchmark is longer: a window would hold too few of them.
const MOST_NS: u64 = 1_000_000_000;

/// Works for `iterations` steps of the chain.
#[inline]
pub fn burn(iterations: u64) {
    let mut x = iterations | 1;
    for _ in 0..iterations {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 29);
    }
    black_box(x);
}

/// Measures how many iterations make a microsecond: the fastest of many short samples, since
/// whatever disturbs a sample makes it slower. Takes about 30 ms.
pub fn calibrate() -> f64 {
    // Until the clock frequency has settled.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(10) {
        burn(black_box(10_000));
    }
    let sample = || {
        const ITERATIONS: u64 = 400_000;
        let start = Instant::now();
        burn(black_box(ITERATIONS));
        ITERATIONS as f64 / (start.elapsed().as_nanos() as f64 / 1e3)
    };
    (0..40).map(|_| sample()).fold(0.0, f64::max)
}

/// A mean length of work, in iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Work of `ns` nanoseconds in the mean; `what` names it in the error.
    pub fn new(what: &str, ns: u64, iterations_per_us: f64) -> Result<Self> {
        let least_ns = (LEAST_ITERATIONS * 1e3 / iterations_per_us).ceil() as u64;
        ensure!(
            ns == 0 || (least_ns..=MOST_NS).contains(&ns),
            "{what} of {ns} ns cannot be measured; allowed: 0, or {least_ns} ns to 1 s"
        );
        Ok(Self((ns as f64 * iterations_per_us / 1e3) as u64))
    }

    /// A length drawn uniformly from half to one and a half times the mean.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> u64 {
        self.0 / 2 + rng.below(self.0 + 1)
    }

    /// The mean itself.
    pub fn mean(self) -> u64 {
        self.0
    }

    /// Whether there is nothing to do.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_spread_around_their_mean() {
        let span = Span::new("a hold time", 3_000, 1_000.0).unwrap();
        let mut rng = Rng::new(7);
        let draws: Vec<u64> = (0..10_000).map(|_| span.draw(&mut rng)).collect();
        let (min, max) = (*draws.iter().min().unwrap(), *draws.iter().max().unwrap());
        // Uniform in [1500, 4500] with mean 3000; 10 000 draws reach within 1 % of the ends.
        assert!((1_500..1_530).contains(&min) && (4_470..=4_500).contains(&max), "{min} {max}");
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean - 3_000.0).abs() < 50.0, "{mean}");
        assert_ne!(Rng::new(1).bits(), Rng::new(2).bits());
    }

    #[test]
    fn a_time_that_cannot_be_measured_is_refused() {
        let span = |ns| Span::new("a hold time", ns, 1_000.0);
        let error = span(7).unwrap_err().to_string();
        assert_eq!(error, "a hold time of 7 ns cannot be measured; allowed: 0, or 8 ns to 1 s");
        assert!(span(0).unwrap().is_zero() && span(8).is_ok() && span(2_000_000_000).is_err());
    }
}
