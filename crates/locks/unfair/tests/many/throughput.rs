//! The throughput mutex.

use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::crowd;
use ulocks_unfair::{HandOff, RawThroughputMutex};

ulocks_testkit::crowd_tests! { RawThroughputMutex<Private>, RawThroughputMutex<Private, HandOff> }

type Strict = RawThroughputMutex<Private<NoSpin, Counted>, HandOff>;

/// Each waiter sleeps on a word of its own.
#[test]
fn a_hand_over_wakes_one_waiter_of_a_long_queue() {
    const CROWD: usize = 2_000;
    let lock = Arc::new(Strict::new());
    lock.lock();
    let users = Arc::clone(&lock);
    let pass = move || {
        users.lock();
        // SAFETY: locked the line before.
        unsafe { users.unlock(()) };
    };
    let slept = || lock.meter().snapshot().slept;
    let mut before = 0;
    let crowd = crowd::wait(CROWD, pass, || {
        before = slept();
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
    });
    crowd.check();
    let slept = slept() - before;
    assert!(slept <= 3 * crowd.waited as u64, "{slept} sleeps of {} waiters on their way", crowd.waited);
}
