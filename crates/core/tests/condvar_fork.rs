//! A condition variable whose waiter spins while another thread forks: the child has the counts,
//! and not the spinner.
#![cfg(world = "machine")]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, yield_now};
use ulocks_core::condvar::RawCondvar;
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex;
use ulocks_testkit::plain::ThreeState;
use ulocks_testkit::{Child, task};

/// Long enough for a fork to come into the spin.
type Patient = ThreeState<Local, 500_000_000>;

struct Place {
    mutex: Patient,
    changed: RawCondvar<Patient>,
    /// Changed under the mutex.
    is_open: AtomicBool,
    /// How many have the mutex and are about to wait. Changed under it.
    waits: AtomicUsize,
}

impl Place {
    fn pass(&self) {
        self.mutex.lock();
        self.waits.fetch_add(1, Relaxed);
        while !self.is_open.load(Relaxed) {
            // SAFETY: the mutex is held, and again when `wait` returns.
            let _ = unsafe { self.changed.wait(&self.mutex, (), None) };
        }
        // SAFETY: locked above, or by `wait`.
        unsafe { self.mutex.unlock(()) };
    }

    /// Blocks until `nth` waiters have registered.
    fn until_registered(&self, nth: usize) {
        while self.waits.load(Relaxed) < nth {
            yield_now();
        }
        // The last of them has released the mutex, hence is registered.
        self.mutex.lock();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
    }

    fn open(&self) {
        self.mutex.lock();
        self.is_open.store(true, Relaxed);
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
        self.changed.notify_one();
    }
}

/// The child's waiter sleeps, so its notification must be a wake-up, whatever the parent's counts
/// says of spinners.
fn in_child(place: &Place) {
    // SAFETY: ends the child if it hangs. Translated, its rounds take half a minute.
    unsafe { libc::alarm(100) };
    let id = &AtomicI32::new(0);
    scope(|threads| {
        threads.spawn(move || {
            id.store(task::id(), Relaxed);
            place.pass();
        });
        place.until_registered(2);
        task::until_asleep(&[id.load(Relaxed)]);
        place.open();
    });
}

#[test]
fn a_spinner_left_behind_by_a_fork_takes_no_notification() {
    let place = &Place {
        mutex: Patient::new(),
        changed: RawCondvar::new(),
        is_open: AtomicBool::new(false),
        waits: AtomicUsize::new(0),
    };
    scope(|threads| {
        threads.spawn(|| place.pass());
        place.until_registered(1);
        let status = Child::runs(|| in_child(place)).waited();
        place.open();
        assert_eq!(status, 0, "the child's waiter was not notified");
    });
}
