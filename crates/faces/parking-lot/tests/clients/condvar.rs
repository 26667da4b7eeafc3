//! Waiters and notifiers. Notifications say how many they reached, waits whether one came.

use super::Arrivals;
use core::time::Duration;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, futex};
use ulocks_parking_lot::protocols::{ExactCondvar, OtherMutex};
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, JoinHandle, with};

/// The mutex of the crate, without spins.
pub type Shipped = ulocks_unfair::RawThroughputMutex<Private<NoSpin>>;
/// A simpler one.
pub type Simple = ulocks_unfair::RawBargingMutex<Private<NoSpin>>;

/// A mutex that these programs can be run with.
pub trait Mutex: RawMutex<Scope = futex::Local, Token = ()> + Send + Sync + 'static {}

impl<L: RawMutex<Scope = futex::Local, Token = ()> + Send + Sync + 'static> Mutex for L {}

struct Place<L> {
    mutex: L,
    other: L,
    condvar: ExactCondvar<L>,
    arrivals: Arrivals,
    /// Set before the last notification.
    is_over: UnsafeCell<bool>,
}

// SAFETY: `is_over` is accessed under `mutex` only.
unsafe impl<L: Mutex> Sync for Place<L> {}
// SAFETY: its parts are `Send`.
unsafe impl<L: Mutex> Send for Place<L> {}

impl<L: Mutex> Place<L> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: new_lock(),
            other: new_lock(),
            condvar: ExactCondvar::new(),
            arrivals: Arrivals::new(),
            is_over: UnsafeCell::new(false),
        })
    }

    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        self.mutex.lock();
        let result = f();
        // SAFETY: locked above; waits return holding it.
        unsafe { self.mutex.unlock(()) };
        result
    }

    /// Waits once. `None` if it is over already.
    fn wait(&self, deadline: Option<Deadline>) -> Option<bool> {
        self.locked(|| {
            self.arrivals.arrive();
            // SAFETY: the mutex is held.
            if self.is_over.with(|is_over| unsafe { *is_over }) {
                return None;
            }
            // SAFETY: the mutex is held.
            let ((), is_notified) = unsafe { self.condvar.wait(&self.mutex, (), deadline) }.unwrap();
            Some(is_notified)
        })
    }

    fn waiter(self: &Arc<Self>, timeout: Option<Duration>) -> JoinHandle<Option<bool>> {
        with(self, move |place| place.wait(timeout.map(Deadline::after)))
    }

    /// Lets no thread wait any more, and notifies those that do.
    fn end(&self) -> usize {
        // SAFETY: the mutex is held.
        self.locked(|| self.is_over.with_mut(|is_over| unsafe { *is_over = true }));
        self.condvar.notify_all()
    }
}

const SOON: Option<Duration> = Some(Duration::from_millis(1));

/// Some wait, and some with a deadline, beside notifications for one and for all, with the mutex
/// and without. As many waits say that they were notified as the notifications have counted.
pub fn counts_agree<L: Mutex>(patient: usize, timed: usize) {
    let place = Place::<L>::new();
    let all: Vec<_> = (0..patient).map(|_| place.waiter(None)).collect();
    let some: Vec<_> = (0..timed).map(|_| place.waiter(SOON)).collect();
    let notifier = with(&place, |place| usize::from(place.locked(|| place.condvar.notify_one())));
    let mut counted = usize::from(place.condvar.notify_one());
    counted += notifier.join().unwrap();
    counted += place.end();
    let mut notified = 0;
    for waiter in all {
        let is_notified = waiter.join().unwrap();
        assert_ne!(is_notified, Some(false), "a wait without a deadline timed out");
        notified += usize::from(is_notified.is_some());
    }
    for waiter in some {
        notified += usize::from(waiter.join().unwrap() == Some(true));
    }
    assert_eq!(counted, notified, "the notifications counted others than the waits");
    assert!(!place.condvar.notify_one(), "a waiter is left behind");
}

/// All wait, one call notifies all, and counts all.
pub fn all_at_once<L: Mutex>(waiters: usize) {
    let place = Place::<L>::new();
    let all: Vec<_> = (0..waiters).map(|_| place.waiter(None)).collect();
    place.arrivals.wait_for(waiters);
    let counted = place.locked(|| place.condvar.notify_all());
    assert_eq!(counted, waiters, "notify_all counted wrongly");
    for waiter in all {
        assert_eq!(waiter.join().unwrap(), Some(true));
    }
    assert_eq!(place.condvar.notify_all(), 0);
}

/// All wait. Each notification reaches one of them.
pub fn one_by_one<L: Mutex>(waiters: usize) {
    let place = Place::<L>::new();
    let all: Vec<_> = (0..waiters).map(|_| place.waiter(None)).collect();
    place.arrivals.wait_for(waiters);
    place.locked(|| {});
    for _ in 0..waiters {
        assert!(place.condvar.notify_one(), "notify_one found no waiter");
    }
    assert!(!place.condvar.notify_one(), "notify_one found one waiter too many");
    for waiter in all {
        assert_eq!(waiter.join().unwrap(), Some(true));
    }
}

/// A second mutex is refused while a thread waits with the first, and not after that.
pub fn a_second_mutex_is_refused<L: Mutex>() {
    let place = Place::<L>::new();
    let waiter = place.waiter(None);
    place.arrivals.wait_for(1);
    place.locked(|| {});
    place.other.lock();
    // SAFETY: the other mutex is held.
    let refused = unsafe { place.condvar.wait(&place.other, (), None) };
    assert!(matches!(refused, Err(OtherMutex(()))));
    assert!(place.condvar.notify_one());
    let soon = SOON.map(Deadline::after);
    // SAFETY: the other mutex is still held.
    let accepted = unsafe { place.condvar.wait(&place.other, (), soon) };
    assert!(matches!(accepted, Ok(((), false))));
    // SAFETY: as above.
    unsafe { place.other.unlock(()) };
    assert_eq!(waiter.join().unwrap(), Some(true));
}
