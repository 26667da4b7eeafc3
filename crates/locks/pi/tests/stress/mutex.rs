//! The mutex.

use ulocks_core::Private;
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_pi::RawPiMutex;
use ulocks_testkit::suite::{self, Effort};

/// Fewer operations than for other locks: each hand-over is two system calls and a sleep.
const EFFORT: Effort = Effort { in_storm: 4_000, pages: 200, ..Effort::LESS };

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    EFFORT;
    RawPiMutex<Private>,
    RawPiMutex<Private<NoSpin>>,
    RawPiMutex<Private<Patience<20_000>>>,
    RawPiMutex<Private<Adaptive, Counted>>,
}

#[test]
fn survives_waiters_that_give_up_on_an_old_kernel() {
    let _old_kernel = force_fallback(Capability::LockPi2);
    suite::waiters_give_up::<RawPiMutex<Private>>(EFFORT);
}

#[test]
fn counters_agree_with_one_another() {
    let counted = suite::contended::<RawPiMutex<Private<NoSpin, Counted>>>(4_000);
    assert_eq!(counted.spun, 0, "without patience nobody spins");
    assert_eq!(
        counted.contended, counted.slept,
        "without patience a contended acquisition goes to the kernel"
    );
    // A mark makes one release go to the kernel; some of those that went found the mutex free
    // there, and left none.
    assert!(counted.woke <= counted.acquired, "{counted:?}");
}
