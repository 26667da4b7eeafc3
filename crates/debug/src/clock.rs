//! The clocks of the checker: one that is cheap, and one that is exact, for the profile.
//!
//! Both tell the time of `CLOCK_MONOTONIC` in nanoseconds. Bit 0 says which one it is: an exact
//! time is odd, and so never 0.

use crate::profile::sums;

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The time by a clock that is cheap and steps every few milliseconds.
pub(crate) fn coarse_now() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE) & !1
}

/// The exact time.
#[cold]
#[inline(never)]
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC) | 1
}

/// The time of an acquisition: exact if the profile is on.
#[inline]
pub(crate) fn since() -> u64 {
    if sums::is_on() { now() } else { coarse_now() }
}

/// Whether a time is exact.
#[inline]
pub(crate) fn is_exact(time: u64) -> bool {
    time & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_which_clock_told_it() {
        let (coarse, exact) = (coarse_now(), now());
        assert!(!is_exact(coarse) && is_exact(exact));
        // The coarse clock is behind.
        assert!(coarse <= exact);
    }
}
