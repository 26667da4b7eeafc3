//! The mutex.

use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Policy, Private};
use ulocks_pi::RawPiMutex;
use ulocks_testkit::stress::{self, Load};

/// Fewer operations than for other locks: each hand-over is two system calls and a sleep.
fn load() -> Load {
    Load { operations: 4_000, ..Load::default() }
}

/// Runs `check` with each way of waiting: they leave by different doors.
macro_rules! with_each_patience {
    ($check:ident) => {
        $check::<Private>();
        $check::<Private<NoSpin>>();
        $check::<Private<Patience<20_000>>>();
        $check::<Private<Adaptive, Counted>>();
    };
}

#[test]
fn excludes() {
    fn check<P: Policy>() {
        stress::exclusion::<RawPiMutex<P>>(load()).check(load());
        let moved_about = Load { shuffle: true, ..load() };
        stress::exclusion::<RawPiMutex<P>>(moved_about).check(moved_about);
    }
    with_each_patience!(check);
}

#[test]
fn survives_waiters_that_give_up() {
    fn check<P: Policy>() {
        stress::timed::<RawPiMutex<P>>(load()).check(load());
        stress::cancel::<RawPiMutex<P>>(load()).check(load());
    }
    with_each_patience!(check);
    let _old_kernel = force_fallback(Capability::LockPi2);
    check::<Private>();
}

#[test]
fn survives_a_storm_of_signals() {
    fn check<P: Policy>() {
        let load = Load { signals: true, ..load() };
        for counts in [stress::exclusion::<RawPiMutex<P>>(load), stress::timed::<RawPiMutex<P>>(load)] {
            counts.check(load);
            assert!(counts.signals > 0, "the storm passed without a signal");
        }
    }
    with_each_patience!(check);
}

#[test]
fn serves_everybody_when_oversubscribed() {
    fn check<P: Policy>() {
        let (load, counts) = stress::oversubscribed::<RawPiMutex<P>>(300);
        counts.check(load);
        assert_eq!(counts.gave_up, 0);
    }
    with_each_patience!(check);
}

#[test]
fn the_last_unlocker_may_unmap() {
    fn check<P: Policy>() {
        assert_eq!(stress::last_unlocker_unmaps::<RawPiMutex<P>>(4, 200), 200);
    }
    with_each_patience!(check);
}

#[test]
fn counters_agree_with_one_another() {
    let mutex = RawPiMutex::<Private<NoSpin, Counted>>::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..4_000 {
                    mutex.lock();
                    // SAFETY: locked the line before.
                    unsafe { mutex.unlock(()) };
                }
            });
        }
    });
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, 16_000);
    assert_eq!(counted.spun, 0, "without patience nobody spins");
    assert_eq!(
        counted.contended, counted.slept,
        "without patience a contended acquisition goes to the kernel"
    );
    // A mark makes one release go to the kernel; some of those who went found the mutex free there,
    // and left none.
    assert!(counted.woke <= counted.acquired, "{counted:?}");
}
