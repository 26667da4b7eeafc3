//! The cycle counter, read so that nothing before or behind it overlaps.
//!
//! As in the seed: fence, read, fence. Where there is no counter that a program may read, the
//! monotonic clock in nanoseconds takes its place. An empty pair of reads takes time itself; the
//! median of many is the clock's own part, which is subtracted from each delay. (The seed took the
//! average. On a virtual machine one interrupted pair of a thousand would move that.) What is
//! shorter than a [step](Calibration::step) cannot be told from nothing: see
//! `workloads::readers::batch`.

use crate::statistics;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What the ticks of [`now`] are called.
pub const UNIT: &str =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { "cycles" } else { "ns" };

/// The counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn now() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 CPU has both instructions, and Linux lets programs read the counter.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// The counter.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn now() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read the virtual counter; the barriers touch nothing.
    unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack)) };
    ticks
}

/// Nanoseconds.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub fn now() -> u64 {
    monotonic_ns()
}

/// The monotonic clock, which timers expire by. Async-signal-safe.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What was found out about the counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Ticks in a nanosecond.
    pub per_ns: f64,
    /// An empty pair of reads: the shortest, the median, the longest. The median is subtracted from
    /// delays.
    pub empty: [u64; 3],
    /// The smallest difference between two readings that are not equal.
    pub step: u64,
}

impl Calibration {
    /// Takes 20 ms.
    pub fn new() -> Self {
        let (start, first) = (Instant::now(), now());
        let mut pairs = Vec::with_capacity(10_000);
        while pairs.len() < 10_000 || start.elapsed() < Duration::from_millis(20) {
            let ticks = now();
            let pair = now() - ticks;
            if pairs.len() < pairs.capacity() {
                pairs.push(pair as f64);
            }
        }
        let (ticks, ns) = (now() - first, start.elapsed().as_nanos());
        let ends = pairs.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &pair| (a.min(pair), b.max(pair)));
        // Pairs are whole numbers of steps; so is the difference of two of them.
        let mut lengths: Vec<u64> = pairs.iter().map(|&pair| pair as u64).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let steps = lengths.windows(2).map(|two| two[1] - two[0]);
        let step = steps.chain(lengths.first().copied()).filter(|&step| step > 0).min().unwrap_or(1);
        let empty = [ends.0 as u64, statistics::median(&pairs) as u64, ends.1 as u64];
        Self { per_ns: ticks as f64 / ns as f64, empty, step }
    }

    /// What is subtracted from each delay.
    pub fn overhead(&self) -> u64 {
        self.empty[1]
    }

    /// Ticks as nanoseconds.
    pub fn ns(&self, ticks: f64) -> f64 {
        ticks / self.per_ns
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self::new()
    }
}
