//! Deadlines: both clocks, both ends, no overflow.

#![cfg(world = "machine")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit as _;

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
fn deadlines_on_one_clock_are_compared_by_their_moments() {
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let [one, two] = [1, 2].map(|hours| Deadline::new(clock, hours * HOUR));
        assert!(one.passes_before(two) && !two.passes_before(one) && !one.passes_before(one));
    }
}

#[test]
fn deadlines_on_two_clocks_are_compared_by_the_time_that_remains() {
    let clocks = [Clock::Monotonic, Clock::Realtime];
    for (clock, other) in [(clocks[0], clocks[1]), (clocks[1], clocks[0])] {
        let soon = Deadline::after_on(clock, HOUR);
        let late = Deadline::after_on(other, 2 * HOUR);
        assert_ne!(soon, Deadline::new(other, soon.since_zero()), "the same number on another clock");
        assert!(soon.passes_before(late) && !late.passes_before(soon));
        assert_eq!(Deadline::earlier(Some(soon), Some(late)), (Some(soon), false));
        assert_eq!(Deadline::earlier(Some(late), Some(soon)), (Some(soon), true));
        assert!(soon.passes_before(Deadline::NEVER) && !Deadline::NEVER.passes_before(soon));
        let [past, long_past] = [clock, other].map(|clock| Deadline::new(clock, Duration::ZERO));
        assert!(past.passes_before(soon) && past.passes_before(late));
        assert!(!past.passes_before(long_past), "both have passed");
    }
}

#[test]
fn a_deadline_is_interruptible_or_not_whatever_its_moment() {
    let plain = Deadline::after(HOUR);
    let flagged = plain.interruptible();
    assert!(flagged.is_interruptible() && !plain.is_interruptible());
    assert_ne!(plain, flagged, "another value of the same moment");
    assert_eq!((flagged.clock(), flagged.since_zero()), (plain.clock(), plain.since_zero()));
    assert!(!plain.passes_before(flagged) && !flagged.passes_before(plain));
    assert_eq!(flagged.interruptible(), flagged);
    // What is chosen stays as it is.
    assert_eq!(Deadline::earlier(Some(flagged), Some(Deadline::NEVER)), (Some(flagged), false));
    let never = Deadline::NEVER.interruptible();
    assert_eq!(Deadline::earlier(Some(never), Some(plain)), (Some(plain), true));
    assert!(!never.has_passed());
}

#[test]
fn of_a_deadline_and_none_the_deadline_is_earlier() {
    let first = Some(Deadline::after(HOUR));
    assert_eq!(Deadline::earlier(None, None), (None, false));
    assert_eq!(Deadline::earlier(first, None), (first, false));
    assert_eq!(Deadline::earlier(None, first), (first, true));
    assert_eq!(Deadline::earlier(first, first), (first, false), "at the same moment it is the first");
}
