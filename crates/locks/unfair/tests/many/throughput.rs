//! The throughput mutex.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::crowd;
use ulocks_unfair::{HandOff, RawThroughputMutex};

ulocks_testkit::crowd_tests! { RawThroughputMutex<Private>, RawThroughputMutex<Private, HandOff> }

type Strict = RawThroughputMutex<Private<NoSpin, Counted>, HandOff>;

/// How many waiters are in the queue: the second word is the ticket of the head and the next one.
fn queued(lock: &Strict) -> u16 {
    // SAFETY: the mutex is `repr(C)` and begins with two words of four bytes, which are only
    // accessed atomically.
    let queue = unsafe { &*std::ptr::from_ref(lock).cast::<AtomicU32>().add(1) }.load(Relaxed);
    ((queue >> 16) as u16).wrapping_sub(queue as u16)
}

/// A waiter that shared its futex and its bit with others woke them all.
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
        // Until each has been woken in vain. The crowd's watchdog ends it.
        let all = lock.meter().snapshot().contended;
        while u64::from(queued(&lock)) < all {
            lock.requeue_key().expect("it has one").wake(u32::MAX);
            std::thread::sleep(Duration::from_millis(1));
        }
        before = slept();
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
    });
    crowd.check();
    let slept = slept() - before;
    assert!(slept <= 4 * crowd.waited as u64, "{slept} sleeps of {} waiters on their way", crowd.waited);
}
