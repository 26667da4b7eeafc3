//! Times that something took, in memory that is all zero before the first: a trial's processes
//! share it.

use crate::engine::record::Outcome;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Steps of an octave; so a value is known within 0.4 %.
const STEPS: usize = 128;
/// Octaves above the first; the last ends after nine minutes.
const OCTAVES: usize = 32;
const BUCKETS: usize = STEPS * (OCTAVES + 1);

/// Waits in nanoseconds, or in ticks: a histogram, and exactly the longest and the sum. Of one
/// worker, which alone writes; read when it has finished.
#[derive(Debug)]
#[repr(C)]
pub struct Waits {
    sum: AtomicU64,
    /// Sum of the squares, the bits of an `f64`.
    squares: AtomicU64,
    max: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

fn add(to: &AtomicU64, value: u64) {
    to.store(to.load(Relaxed) + value, Relaxed);
}

impl Waits {
    /// None yet.
    pub fn new() -> Box<Self> {
        // SAFETY: atomics and arrays of them may be zero.
        unsafe { Box::new_zeroed().assume_init() }
    }

    /// One more. Does not allocate.
    pub fn record(&self, ns: u64) {
        add(&self.sum, ns);
        let squares = f64::from_bits(self.squares.load(Relaxed)) + ns as f64 * ns as f64;
        self.squares.store(squares.to_bits(), Relaxed);
        self.max.store(ns.max(self.max.load(Relaxed)), Relaxed);
        add(&self.buckets[bucket(ns)], 1);
    }

    /// What is said of all of them together, by the end of a figure's name, and how many they are;
    /// nothing of none.
    pub fn figures(all: &[&Self]) -> Option<(u64, [(&'static str, f64); 7])> {
        let sum = |of: &dyn Fn(&Self) -> u64| all.iter().map(|waits| of(waits)).sum::<u64>();
        let max = all.iter().map(|waits| waits.max.load(Relaxed)).max().unwrap_or(0);
        let squares: f64 = all.iter().map(|waits| f64::from_bits(waits.squares.load(Relaxed))).sum();
        let buckets: Vec<u64> =
            (0..BUCKETS).map(|at| sum(&|waits| waits.buckets[at].load(Relaxed))).collect();
        let (count, total) = (buckets.iter().sum::<u64>(), sum(&|waits| waits.sum.load(Relaxed)));
        // The smallest value that this share of all does not exceed, but for the width of a bucket.
        let quantile = |share: f64| {
            let (rank, mut below) = (share * count as f64, 0);
            let found = buckets.iter().position(|count| {
                below += count;
                below > 0 && below as f64 >= rank
            });
            found.map_or(max, |bucket| middle(bucket).min(max)) as f64
        };
        let figures = [
            ("min", quantile(0.0)),
            ("mean", total as f64 / count as f64),
            ("p50", quantile(0.5)),
            ("p99", quantile(0.99)),
            ("p99.9", quantile(0.999)),
            ("max", max as f64),
            ("now", squares / total as f64),
        ];
        (count > 0).then_some((count, figures))
    }

    /// What is said of the waits of operations.
    pub fn say(all: &[&Self], outcome: &mut Outcome) {
        let figures = Self::figures(all).into_iter().flat_map(|all| all.1);
        let known = figures.filter(|(kind, value)| *kind != "min" && value.is_finite());
        outcome.extend(known.map(|(kind, value)| (format!("wait-{kind}"), value)));
    }
}

impl Default for Box<Waits> {
    fn default() -> Self {
        Waits::new()
    }
}

fn bucket(ns: u64) -> usize {
    // The first two octaves have steps of one.
    let shift = (u64::BITS - (ns / (2 * STEPS as u64)).leading_zeros()) as usize;
    (shift * STEPS + (ns >> shift) as usize).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    (((bucket - shift * STEPS) as u64) << shift) + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_found_by_its_middle_and_is_near_to_what_is_in_it() {
        assert!((0..BUCKETS).all(|at| bucket(middle(at)) == at));
        let values = std::iter::successors(Some(1u64), |ns| Some(ns + ns / 100 + 1));
        for ns in values.take_while(|&ns| ns < 500_000_000_000) {
            assert!(middle(bucket(ns)).abs_diff(ns) as f64 <= ns as f64 * 0.004, "{ns}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_is_said_of_waits_follows_from_them() {
        let (waits, more, mut outcome) = (Waits::new(), Waits::new(), Outcome::new());
        Waits::say(&[&waits, &more], &mut outcome);
        assert!(outcome.is_empty());
        (0..999).for_each(|_| waits.record(100));
        more.record(1_000_000);
        Waits::say(&[&waits, &more], &mut outcome);
        let now = (999.0 * 1e4 + 1e12) / 1_099_900.0;
        let expected = [
            ("wait-max", 1e6),
            ("wait-mean", 1_099.9),
            ("wait-now", now),
            ("wait-p50", 100.0),
            ("wait-p99", 100.0),
            ("wait-p99.9", 100.0),
        ];
        assert_eq!(outcome, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
