//! The mutex.

use ulocks_calock::{Every, Interval, RawCalock};
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Policy, Private};
use ulocks_testkit::stress::{self, Load};

/// Runs `check` with each way of waiting and with intervals that pass often: they leave by
/// different doors.
macro_rules! with_each {
    ($check:ident) => {
        $check::<Private, Every>();
        $check::<Private<NoSpin>, Every>();
        $check::<Private<NoSpin>, Every<50_000>>();
        $check::<Private<Patience<20_000>>, Every<1_000_000>>();
        $check::<Private<Adaptive, Counted>, Every<1_000>>();
    };
}

#[test]
fn excludes() {
    fn check<P: Policy, I: Interval>() {
        let load = Load { operations: 4_000, ..Load::default() };
        stress::exclusion::<RawCalock<P, I>>(load).check(load);
        let moved_about = Load { shuffle: true, ..load };
        stress::exclusion::<RawCalock<P, I>>(moved_about).check(moved_about);
    }
    with_each!(check);
}

#[test]
fn survives_waiters_that_give_up() {
    fn check<P: Policy, I: Interval>() {
        let load = Load { operations: 4_000, ..Load::default() };
        stress::timed::<RawCalock<P, I>>(load).check(load);
        stress::cancel::<RawCalock<P, I>>(load).check(load);
    }
    with_each!(check);
}

/// Holds that outlast every patience, so that waiters park, are promoted, and give up in each
/// state.
#[test]
fn survives_waiters_that_give_up_asleep() {
    fn check<P: Policy, I: Interval>() {
        let load = Load { threads: 16, operations: 400, hold: 5_000, ..Load::default() };
        stress::timed::<RawCalock<P, I>>(load).check(load);
    }
    with_each!(check);
}

#[test]
fn survives_a_storm_of_signals() {
    fn check<P: Policy, I: Interval>() {
        let load = Load { signals: true, ..Load::default() };
        for counts in [stress::exclusion::<RawCalock<P, I>>(load), stress::timed::<RawCalock<P, I>>(load)] {
            counts.check(load);
            assert!(counts.signals > 0, "the storm passed without a signal");
        }
    }
    with_each!(check);
}

#[test]
fn serves_everybody_when_oversubscribed() {
    fn check<P: Policy, I: Interval>() {
        let (load, counts) = stress::oversubscribed::<RawCalock<P, I>>(300);
        counts.check(load);
        assert_eq!(counts.gave_up, 0);
    }
    with_each!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<P: Policy, I: Interval>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawCalock<P, I>>(4, 300), 300);
    }
    with_each!(check);
}

/// `threads` threads that acquire `rounds` times each and hold for `hold` pauses; what the lock
/// counted.
fn counted<I: Interval>(threads: u64, rounds: u64, hold: u32) -> Snapshot {
    let mutex = RawCalock::<Private<NoSpin, Counted>, I>::new();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    mutex.lock();
                    (0..hold).for_each(|_| std::hint::spin_loop());
                    // SAFETY: locked above.
                    unsafe { mutex.unlock(()) };
                }
            });
        }
    });
    assert_eq!(mutex.state(), ulocks_calock::State::UNLOCKED, "somebody has left something behind");
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, threads * rounds);
    counted
}

#[test]
fn each_acquisition_is_counted_in_one_way() {
    for counted in [counted::<Every>(4, 20_000, 0), counted::<Every<20_000>>(16, 1_000, 500)] {
        // Who finds a lock free for which others are parked takes it past them without having
        // contended.
        let other_than_fast = counted.spun + counted.stolen + counted.woken + counted.reserved;
        assert_eq!(counted.fast(), counted.acquired - other_than_fast);
        assert!(counted.contended <= other_than_fast, "{counted:?}");
        // Without patience, who has contended is culled, and each of those leaves as one of these.
        assert_eq!(counted.culled, counted.contended, "{counted:?}");
        assert!(counted.woken + counted.reserved <= counted.culled, "{counted:?}");
        assert_eq!(counted.reserved, counted.promoted, "nobody gave up: {counted:?}");
        assert!(counted.slept >= counted.woken + counted.reserved, "{counted:?}");
    }
}
