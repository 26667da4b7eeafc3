//! Waits, in memory that is all zero before the first: a trial's processes share it.

use crate::engine::record::Outcome;

/// Steps of an octave; so a value is known within 0.4 %.
const STEPS: usize = 128;
/// Octaves above the first; the last ends after nine minutes.
const OCTAVES: usize = 32;
const BUCKETS: usize = STEPS * (OCTAVES + 1);

/// Waits in nanoseconds: a histogram, and exactly the longest, the sum and the sum of the squares.
#[derive(Debug)]
#[repr(C)]
pub struct Waits {
    count: u64,
    sum: u64,
    squares: f64,
    max: u64,
    buckets: [u64; BUCKETS],
}

impl Waits {
    /// None yet.
    pub fn new() -> Box<Self> {
        // SAFETY: numbers and arrays of them may be zero.
        unsafe { Box::new_zeroed().assume_init() }
    }

    /// One more. Does not allocate.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum += ns;
        self.squares += ns as f64 * ns as f64;
        self.max = self.max.max(ns);
        self.buckets[bucket(ns)] += 1;
    }

    /// Those of another worker as well.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// The smallest value that this share of all does not exceed, but for the width of a bucket.
    fn quantile(&self, share: f64) -> u64 {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map_or(self.max, |bucket| middle(bucket).min(self.max))
    }

    /// What is said of them; nothing of none.
    pub fn say(&self, outcome: &mut Outcome) {
        if self.count == 0 {
            return;
        }
        let figures = [
            ("wait-mean", self.sum as f64 / self.count as f64),
            ("wait-p50", self.quantile(0.5) as f64),
            ("wait-p99", self.quantile(0.99) as f64),
            ("wait-p99.9", self.quantile(0.999) as f64),
            ("wait-max", self.max as f64),
        ];
        outcome.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        if self.sum > 0 {
            outcome.insert("wait-now".into(), self.squares / self.sum as f64);
        }
    }
}

fn bucket(ns: u64) -> usize {
    let octave = (u64::BITS - (ns / STEPS as u64).leading_zeros()) as usize;
    if octave > OCTAVES {
        return BUCKETS - 1;
    }
    // The first two octaves have steps of one.
    let shift = octave.saturating_sub(1);
    octave * STEPS + (ns >> shift) as usize - if octave > 0 { STEPS } else { 0 }
}

fn middle(bucket: usize) -> u64 {
    let (octave, step) = (bucket / STEPS, (bucket % STEPS) as u64);
    if octave == 0 {
        return step;
    }
    let width = 1 << (octave - 1);
    (STEPS as u64 + step) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_found_by_its_middle_and_is_near_to_what_is_in_it() {
        assert_eq!(bucket(0), 0);
        assert!((1..BUCKETS).all(|at| bucket(middle(at)) == at));
        let mut ns = 1u64;
        while ns < 500_000_000_000 {
            assert!(middle(bucket(ns)).abs_diff(ns) as f64 <= ns as f64 * 0.004, "{ns}");
            ns += ns / 100 + 1;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_is_said_of_waits_follows_from_them() {
        let (mut waits, mut more, mut outcome) = (Waits::new(), Waits::new(), Outcome::new());
        waits.say(&mut outcome);
        assert!(outcome.is_empty());
        (0..999).for_each(|_| waits.record(100));
        more.record(1_000_000);
        waits.add(&more);
        waits.say(&mut outcome);
        let all: Vec<_> = outcome.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let now = (999.0 * 1e4 + 1e12) / 1_099_900.0;
        assert_eq!(
            all,
            [
                ("wait-max", 1e6),
                ("wait-mean", 1_099.9),
                ("wait-now", now),
                ("wait-p50", 100.0),
                ("wait-p99", 100.0),
                ("wait-p99.9", 100.0),
            ]
        );
    }
}
