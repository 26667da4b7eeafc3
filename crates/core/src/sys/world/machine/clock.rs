//! The kernel's clocks and the two shapes in which it takes a point in time.

use crate::sys::types::time::{Clock, Deadline};
use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// `__kernel_timespec`: what every call of a 64-bit kernel interface takes, and the `_time64` calls
/// of a 32-bit one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const _: () = assert!(size_of::<Timespec>() == 16);

impl Timespec {
    /// The moment of `deadline`. The kernel cuts what exceeds its own range (292 years), so 2^63
    /// seconds are safe.
    pub(crate) fn of(deadline: Deadline) -> Self {
        let point = deadline.since_zero();
        Self {
            seconds: i64::try_from(point.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: point.subsec_nanos().into(),
        }
    }

    /// For a kernel without the `_time64` calls: what lies beyond 2038, or 68 years of uptime, is
    /// that end.
    #[cfg(all(target_pointer_width = "32", not(target_arch = "x86_64")))]
    pub(super) fn to_time32(self) -> [i32; 2] {
        match i32::try_from(self.seconds) {
            Ok(seconds) => [seconds, self.nanoseconds as i32],
            Err(_) => [i32::MAX, 999_999_999],
        }
    }
}

/// Reads `clock`: the time since its zero.
#[inline]
pub(crate) fn now(clock: Clock) -> Duration {
    match clock {
        Clock::Monotonic => monotonic(),
        // The standard library has the call that survives 2038 on 32-bit machines.
        Clock::Realtime => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
    }
}

#[inline]
fn monotonic() -> Duration {
    // SAFETY: a timespec is integers, for which all-zero is a value.
    let mut reading: libc::timespec = unsafe { core::mem::zeroed() };
    // SAFETY: `reading` is writable for the duration of the call, which keeps no pointer to it.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut reading) };
    debug_assert_eq!(failed, 0, "every kernel has this clock");
    Duration::new(reading.tv_sec as u64, reading.tv_nsec as u32)
}

/// The reading of the monotonic clock at `instant`.
pub(crate) fn moment_of(instant: Instant) -> Duration {
    // An `Instant` keeps its clock reading to itself; its distance from now is what there is to go
    // by. Our reading comes second, so the moment may be late by the time between the two readings,
    // never early.
    let now = Instant::now();
    let reading = self::now(Clock::Monotonic);
    match instant.checked_duration_since(now) {
        Some(ahead) => reading.saturating_add(ahead),
        None => reading.saturating_sub(now.duration_since(instant)),
    }
}

/// Whether the clock of `deadline` has reached it.
#[inline]
pub(crate) fn has_passed(deadline: &Deadline) -> bool {
    now(deadline.clock()) >= deadline.since_zero()
}
