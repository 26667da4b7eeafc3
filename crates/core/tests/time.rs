//! Deadlines: both clocks, both ends, no overflow.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ulocks_core::time::{Clock, Deadline};

const HOUR: Duration = Duration::from_secs(3600);
/// Miri keeps the time of day to itself.
const CLOCKS: &[Clock] = if cfg!(miri) { &[Clock::Monotonic] } else { &[Clock::Monotonic, Clock::Realtime] };

#[test]
fn a_deadline_passes_when_its_time_has_come() {
    for &clock in CLOCKS {
        let deadline = Deadline::after_on(clock, HOUR);
        assert!(!deadline.has_passed());
        assert!(deadline.remaining() <= HOUR);
        let deadline = Deadline::after_on(clock, Duration::from_millis(1));
        while !deadline.has_passed() {
            std::hint::spin_loop();
        }
        assert_eq!(deadline.remaining(), Duration::ZERO);
        assert!(Deadline::after_on(clock, Duration::ZERO).has_passed());
    }
}

#[test]
fn nothing_overflows() {
    for &clock in CLOCKS {
        let far = Deadline::after_on(clock, Duration::MAX);
        assert_eq!(far.since_zero(), Duration::MAX);
        assert!(!far.has_passed());
        assert!(far.remaining() > HOUR);
    }
    assert_eq!(Deadline::after(Duration::MAX), Deadline::NEVER);
    assert!(!Deadline::NEVER.has_passed());
    assert_eq!(Deadline::from(UNIX_EPOCH - HOUR), Deadline::new(Clock::Realtime, Duration::ZERO));
}

#[test]
fn an_instant_is_not_early_and_keeps_its_distance() {
    let now = Instant::now();
    let (past, future) = (Deadline::at(now), Deadline::at(now + HOUR));
    assert!(past.has_passed());
    assert!(!future.has_passed());
    assert!(future.since_zero() - past.since_zero() >= HOUR || future.remaining() <= HOUR);
    // The moment is reached no earlier than the instant itself.
    let end = Instant::now() + Duration::from_millis(2);
    let deadline = Deadline::from(end);
    while !deadline.has_passed() {
        std::hint::spin_loop();
    }
    assert!(Instant::now() >= end);
    // An instant before the machine was started is the start.
    if let Some(before) = now.checked_sub(future.since_zero()) {
        assert_eq!(Deadline::at(before).since_zero(), Duration::ZERO);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri keeps the time of day to itself")]
fn a_time_of_day_is_exact() {
    let time = SystemTime::now() + HOUR;
    let deadline = Deadline::at_time_of_day(time);
    assert_eq!(deadline.clock(), Clock::Realtime);
    assert_eq!(UNIX_EPOCH + deadline.since_zero(), time);
}

#[test]
fn clocks_do_not_compare() {
    let [monotonic, realtime] = [Clock::Monotonic, Clock::Realtime].map(|clock| Deadline::new(clock, HOUR));
    assert_ne!(monotonic, realtime);
    assert_eq!(monotonic.partial_cmp(&realtime), None);
    assert!(monotonic < Deadline::new(Clock::Monotonic, 2 * HOUR));
    assert!(realtime < Deadline::new(Clock::Realtime, 2 * HOUR));
}
