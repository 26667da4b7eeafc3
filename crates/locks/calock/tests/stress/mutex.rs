//! The mutex.

use ulocks_calock::{Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::queue::Rule;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::suite::Effort;
use ulocks_testkit::tasks::Mixed;

type Spinner = RawCalock<Private>;
type Sleeper = RawCalock<Private<NoSpin>>;
type OftenSleeper = RawCalock<Private<NoSpin>, Every<50_000>>;
type Patient = RawCalock<Private<Patience<20_000>>, Every<1_000_000>>;
type OftenSpinner = RawCalock<Private<Adaptive, Counted>, Every<1_000>>;

// Each way of waiting, and intervals that pass often: they leave by different doors.
ulocks_testkit::stress_tests! { Effort::LESS; Spinner, Sleeper, OftenSleeper, Patient, OftenSpinner, Mixed<Spinner> }

ulocks_testkit::interrupt_tests! { Effort::LESS; Spinner, Sleeper, OftenSleeper, Patient }

/// Holds that outlast every patience, so that waiters sleep, are promoted, and give up in each
/// state.
#[test]
fn survives_waiters_that_give_up_asleep() {
    fn check<L: RawMutex + Send + Sync + 'static>() {
        let load = Load { threads: 16, operations: 400, hold: 5_000, ..Load::default() };
        stress::timed::<L>(load).check();
    }
    check::<Spinner>();
    check::<Sleeper>();
    check::<OftenSleeper>();
    check::<Patient>();
    check::<OftenSpinner>();
}

/// `threads` threads that acquire `rounds` times each and hold for `hold` pauses; what the lock
/// counted.
fn counted<I: Rule>(threads: u64, rounds: u64, hold: u32) -> Snapshot {
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
    assert!(!mutex.is_locked() && !mutex.is_owed(), "somebody has left something behind");
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, threads * rounds);
    counted
}

#[test]
fn each_acquisition_is_counted_in_one_way() {
    for counted in [counted::<Every>(4, 20_000, 0), counted::<Every<20_000>>(16, 1_000, 500)] {
        // A thread that finds a lock free for which others wait takes it past them without having
        // contended.
        let other_than_fast = counted.spun + counted.stolen + counted.woken + counted.reserved;
        assert_eq!(counted.fast(), counted.acquired - other_than_fast);
        assert!(counted.contended <= other_than_fast, "{counted:?}");
        // Without patience, a thread that has contended is culled, and each of those leaves as one
        // of these.
        assert_eq!(counted.culled, counted.contended, "{counted:?}");
        assert!(counted.woken + counted.reserved <= counted.culled, "{counted:?}");
        assert_eq!(counted.reserved, counted.promoted, "nobody gave up: {counted:?}");
        assert!(counted.slept >= counted.woken + counted.reserved, "{counted:?}");
    }
}
