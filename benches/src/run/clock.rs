//! The cycle counter, read so that nothing before or behind it overlaps.
//!
//! As in the seed: fence, read, fence. On other architectures than x86-64 the monotonic clock in
//! nanoseconds takes its place. An empty pair of reads takes time itself; the median of many is the
//! clock's own part, which is subtracted from each delay. (The seed took the average. On a virtual
//! machine one interrupted pair of a thousand would move that.)

use super::threads::clock_time;
use std::time::{Duration, Instant};

/// The counter.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has both instructions, and Linux lets programs read the counter.
    unsafe {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
    #[cfg(not(target_arch = "x86_64"))]
    monotonic_ns()
}

/// The monotonic clock, which timers expire by. Async-signal-safe.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_time(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// What was found out about the counter.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Ticks in a nanosecond.
    pub per_ns: f64,
    /// An empty pair of reads: the shortest, the median, the longest.
    pub empty: [u64; 3],
}

impl Calibration {
    /// Takes 20 ms.
    pub fn take() -> Self {
        let (start, first) = (Instant::now(), now());
        let mut pairs = Vec::with_capacity(10_000);
        while pairs.len() < 10_000 || start.elapsed() < Duration::from_millis(20) {
            let ticks = now();
            let pair = now() - ticks;
            if pairs.len() < pairs.capacity() {
                pairs.push(pair);
            }
        }
        let per_ns = (now() - first) as f64 / start.elapsed().as_nanos() as f64;
        pairs.sort_unstable();
        Self { per_ns, empty: [0, pairs.len() / 2, pairs.len() - 1].map(|rank| pairs[rank]) }
    }

    /// The median of empty pairs, which is subtracted from each delay.
    pub fn overhead(&self) -> u64 {
        self.empty[1]
    }

    /// Ticks as nanoseconds.
    pub fn ns(&self, ticks: f64) -> f64 {
        ticks / self.per_ns
    }
}
