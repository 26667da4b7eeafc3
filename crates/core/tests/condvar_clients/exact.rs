//! Clients of a condition variable whose waits end by a notification, and not otherwise.

use super::condvar_clients::{Lock, soon};
use std::sync::Arc;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::model::free;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{JoinHandle, spawn, with};

/// Threads that wait once each, and in which order they came and returned.
struct Place<L: Lock> {
    mutex: L,
    condvar: RawCondvar<L>,
    /// Under the mutex: how many have come, and the numbers of those that have returned.
    log: UnsafeCell<(usize, Vec<usize>)>,
    arrived: Futex<Local>,
}

// SAFETY: `log` is accessed under `mutex` only.
unsafe impl<L: Lock> Sync for Place<L> {}
// SAFETY: its parts are `Send`.
unsafe impl<L: Lock> Send for Place<L> {}

impl<L: Lock> Place<L> {
    fn new() -> Self {
        let log = UnsafeCell::new((0, Vec::new()));
        Self { mutex: new_lock(), condvar: RawCondvar::new(), log, arrived: Futex::new(0) }
    }

    /// Waits once. Whether it was notified, and how many have not returned yet.
    fn wait(&self, may_give_up: bool) -> (bool, usize) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        let nth = self.log.with_mut(|log| unsafe {
            (*log).0 += 1;
            (*log).0 - 1
        });
        self.arrived.fetch_add(1, Relaxed);
        self.arrived.key().wake(1);
        // SAFETY: the mutex is held, and so it is when `wait` returns.
        let ((), wakeup) = unsafe { self.condvar.wait(&self.mutex, (), may_give_up.then(soon)) };
        // SAFETY: as above.
        let left = self.log.with_mut(|log| unsafe {
            let log = &mut *log;
            log.1.push(nth);
            log.0 - log.1.len()
        });
        // SAFETY: the mutex is held.
        unsafe { self.mutex.unlock(()) };
        (wakeup == Wakeup::Notified, left)
    }

    /// Blocks until so many threads wait.
    fn until_all_wait(&self, waiters: usize) {
        loop {
            let count = self.arrived.load(Relaxed);
            if count as usize == waiters {
                break;
            }
            self.arrived.wait(count, None);
        }
        // The last one releases the mutex once it waits.
        self.mutex.lock();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
    }

    fn notify_all(&self, while_holding: bool) -> usize {
        if !while_holding {
            return self.condvar.notify_all();
        }
        self.mutex.lock();
        let count = self.condvar.notify_all();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
        count
    }
}

fn waiters<L: Lock>(place: &Arc<Place<L>>, count: usize, may_give_up: bool) -> Vec<JoinHandle<bool>> {
    let waiter = |_| with(place, move |place| place.wait(may_give_up).0);
    (0..count).map(waiter).collect()
}

/// Each waiter that one notification reaches returns, says so, and is counted. Returns the order in
/// which they returned; they came in ascending order.
pub fn all_in_turn<L: Lock>(count: usize, while_holding: bool) -> Vec<usize> {
    let place = Arc::new(Place::<L>::new());
    let waiting = waiters(&place, count, false);
    place.until_all_wait(count);
    assert_eq!(place.notify_all(while_holding), count, "not all of those who waited are counted");
    assert!(waiting.into_iter().all(|waiter| waiter.join().unwrap()), "a waiter was not notified");
    place.mutex.lock();
    // SAFETY: the mutex is held.
    let order = place.log.with(|log| unsafe { (*log).1.clone() });
    // SAFETY: locked above.
    unsafe { place.mutex.unlock(()) };
    assert!(!place.mutex.is_locked(), "the mutex is locked although its last holder released it");
    order
}

/// Of the time-outs of `count` waiters and one notification exactly one wins.
pub fn exactly_one_wins<L: Lock>(count: usize) {
    let place = Arc::new(Place::<L>::new());
    let waiting = waiters(&place, count, true);
    let given = usize::from(place.condvar.notify_one());
    let taken: usize = waiting.into_iter().map(|waiter| usize::from(waiter.join().unwrap())).sum();
    assert_eq!(taken, given, "waiters that say that they were notified, and notifications given");
    assert_eq!(place.condvar.notify_all(), 0, "a waiter is left behind");
}

/// The same for one waiter that is notified by a holder of the mutex, while other threads wait for
/// that mutex, and may give up.
pub fn a_moved_waiter_does_not_give_up<L: Lock>(others: usize) {
    let place = Arc::new(Place::<L>::new());
    let waiting = waiters(&place, 1, true);
    place.until_all_wait(1);
    place.mutex.lock();
    let leaver = |_| {
        with(&place, |place| {
            if place.mutex.lock_until(soon()).is_some() {
                // SAFETY: just locked.
                unsafe { place.mutex.unlock(()) };
            }
        })
    };
    let leaving: Vec<_> = (0..others).map(leaver).collect();
    let given = usize::from(place.condvar.notify_one());
    // SAFETY: locked above.
    unsafe { place.mutex.unlock(()) };
    let taken: usize = waiting.into_iter().map(|waiter| usize::from(waiter.join().unwrap())).sum();
    assert_eq!(taken, given, "waiters that say that they were notified, and notifications given");
    leaving.into_iter().for_each(|leaver| leaver.join().unwrap());
}

/// One notifier beside another, waiters that may give up, and one that does not: nobody is left.
pub fn nobody_is_left<L: Lock>(timed: usize) {
    let place = Arc::new(Place::<L>::new());
    let waiting = waiters(&place, timed, true);
    let patient = waiters(&place, 1, false);
    let other = with(&place, |place| _ = place.condvar.notify_one());
    place.until_all_wait(timed + 1);
    place.notify_all(true);
    assert!(patient.into_iter().all(|waiter| waiter.join().unwrap()), "the patient waiter gave up");
    waiting.into_iter().for_each(|waiter| _ = waiter.join().unwrap());
    other.join().unwrap();
    assert_eq!(place.condvar.notify_all(), 0, "a waiter is left behind");
}

/// A notifier waits next, and does not take its own notification from a waiter that was there.
pub fn a_notifier_waits_next<L: Lock>() {
    let place = Arc::new(Place::<L>::new());
    let (mut timed, mut patient) = (waiters(&place, 1, true), waiters(&place, 1, false));
    place.until_all_wait(2);
    let notifier = with(&place, |place| {
        place.condvar.notify_one();
        place.wait(false).0
    });
    let join = |waiters: &mut Vec<JoinHandle<bool>>| waiters.drain(..).all(|waiter| waiter.join().unwrap());
    if !join(&mut timed) {
        assert!(join(&mut patient), "the patient waiter gave up");
    }
    place.until_all_wait(3);
    place.notify_all(true);
    assert!(join(&mut patient) && notifier.join().unwrap());
}

/// The last waiter frees the condition variable and the mutex as soon as it returns.
pub fn the_last_waiter_frees<L: Lock>(count: usize, while_holding: bool) {
    let address = Box::into_raw(Box::new(Place::<L>::new())).expose_provenance();
    // SAFETY: the place lives until the last waiter has returned, whom only `notify_all` notifies.
    let place = move || unsafe { &*std::ptr::with_exposed_provenance::<Place<L>>(address) };
    let waiter = |_| {
        spawn(move || {
            let (notified, left) = place().wait(false);
            if left == 0 {
                // SAFETY: all others have returned, and the notifier uses the place no more.
                unsafe { free(std::ptr::with_exposed_provenance_mut::<Place<L>>(address)) };
            }
            notified
        })
    };
    let waiting: Vec<_> = (0..count).map(waiter).collect();
    place().until_all_wait(count);
    assert_eq!(place().notify_all(while_holding), count);
    assert!(waiting.into_iter().all(|waiter| waiter.join().unwrap()));
}
