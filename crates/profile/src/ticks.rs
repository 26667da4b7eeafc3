//! The clock of holds: it is read twice for each acquisition while the profile is on.
//!
//! On x86-64 it is the time stamp counter, if the kernel's own clock is made of that: then the
//! kernel has found that it goes on at one rate, and is the same on all CPUs. Otherwise it is the
//! kernel's clock. In CPU time of the thread, in a loop of nothing else, on two virtual CPUs (EPYC,
//! 28 November 2026), a read takes
//!
//! | clock | ns |
//! |---|---|
//! | `clock_gettime`, `CLOCK_MONOTONIC` | 21.7 |
//! | the counter behind `lfence` | 15.6 |
//! | the counter with `rdtscp` | 18.0 |
//! | the counter, `rdtsc` | 9.5 |
//! | `clock_gettime`, `CLOCK_MONOTONIC_COARSE`, which steps by milliseconds | 2.8 |
//!
//! A plain `rdtsc` may be read some instructions early. So a hold may be wrong by some nanoseconds.
//!
//! What is counted in ticks is told in nanoseconds by both clocks, read at the first start of the
//! profile and again at the end.

use core::mem::MaybeUninit;
use ulocks_core::sync::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed},
    fence,
};

/// Whether a tick is one of the counter, and not a nanosecond.
static IS_COUNTER: AtomicBool = AtomicBool::new(false);
/// Both clocks when the counter was chosen.
static NANOS: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);

/// The time of the kernel's clock, in nanoseconds.
pub fn now() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: it is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr()) };
    // SAFETY: the function writes the answer: every kernel has this clock.
    let now = unsafe { now.assume_init() };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Decides what a tick is. The caller has the profile alone, which was never on before.
#[cold]
pub(crate) fn choose() {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_of_kernel = || std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc");
    if cfg!(all(target_arch = "x86_64", not(miri))) && is_of_kernel() {
        let (nanos, ticks) = both();
        NANOS.store(nanos, Relaxed);
        TICKS.store(ticks, Relaxed);
        // Last: a tick is a nanosecond until then. By (want) a thread that finds the
        // profile on sees it.
        IS_COUNTER.store(true, Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and it reads no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

/// The time in ticks.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    if cfg!(target_arch = "x86_64") {
        // The caller has found the profile on. It is no instruction there.
        fence(Acquire); // (want)
    }
    if IS_COUNTER.load(Relaxed) { counter() } else { now() }
}

/// Both clocks at one moment, as far as that can be had: a thread may be preempted between the two.
fn both() -> (u64, u64) {
    let read = || {
        let (before, nanos, after) = (counter(), now(), counter());
        (after.saturating_sub(before), nanos, before + after.saturating_sub(before) / 2)
    };
    let (_, nanos, ticks) = core::iter::repeat_with(read).take(8).min().expect("it is read eight times");
    (nanos, ticks)
}

/// How long ticks are.
pub(crate) struct Scale {
    nanos: u64,
    ticks: u64,
}

impl Scale {
    /// As far as is known now.
    pub fn now() -> Self {
        if !IS_COUNTER.load(Relaxed) {
            return Self { nanos: 1, ticks: 1 };
        }
        let (nanos, ticks) = both();
        Self { nanos: nanos - NANOS.load(Relaxed), ticks: ticks.saturating_sub(TICKS.load(Relaxed)).max(1) }
    }

    pub fn nanos(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(self.nanos) / u128::from(self.ticks)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_as_long_as_the_kernel_says() {
        crate::start();
        crate::stop();
        let (before, began) = (now(), ticks());
        std::thread::sleep(core::time::Duration::from_millis(5));
        let (ended, after) = (ticks(), now());
        let slept = Scale::now().nanos(ended - began);
        // A thousandth is more than two clocks of one oscillator differ.
        let outer = (after - before) + (after - before) / 1000;
        assert!((4_990_000..=outer).contains(&slept), "{slept} of {outer}");
    }
}
