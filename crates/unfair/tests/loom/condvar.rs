//! The condition variable on this mutex: sleepers that a notification moves to a word that is free, locked or marked,
//! beside threads that barge in and release without a look at the queue.

use crate::mutant::{Mutant, bug};
use core::time::Duration;
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::model::{Config, Grade, explore, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{JoinHandle, spawn};

type Mutex = ulocks_unfair::RawMutex<Private<NoSpin>>;
type Forgetful = Mutant<{ bug::REQUEUED_FORGETS }>;

/// Tickets under the mutex, and who waits for them.
struct Tickets<L: RawMutex> {
    mutex: L,
    condvar: RawCondvar<L>,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is accessed under `mutex` only.
unsafe impl<L: RawMutex + Sync> Sync for Tickets<L> {}
// SAFETY: its parts are `Send`.
unsafe impl<L: RawMutex + Send> Send for Tickets<L> {}

impl<L: RawMutex<Token = ()> + Send + Sync + 'static> Tickets<L> {
    fn new() -> Arc<Self> {
        Arc::new(Self { mutex: new_lock(), condvar: RawCondvar::new(), count: UnsafeCell::new(0) })
    }

    fn put_and(&self, count: usize, then: impl FnOnce()) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        self.count.with_mut(|tickets| unsafe { *tickets += count });
        then();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
    }

    /// Waits for a ticket and takes it; with a deadline, gives up when that has passed and there is still none.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        self.mutex.lock();
        let mut timed_out = false;
        let taken = loop {
            // SAFETY: the mutex is held.
            let taken = self.count.with_mut(|tickets| unsafe {
                let some = *tickets > 0;
                *tickets -= usize::from(some);
                some
            });
            if taken || timed_out {
                break taken;
            }
            // SAFETY: the mutex is held by this thread.
            let ((), wakeup) = unsafe { self.condvar.wait(&self.mutex, (), deadline) };
            timed_out = wakeup == Wakeup::TimedOut;
        };
        // SAFETY: held, by `lock` or by the last `wait`.
        unsafe { self.mutex.unlock(()) };
        taken
    }

    fn waiter(self: &Arc<Self>) -> JoinHandle<bool> {
        let tickets = Arc::clone(self);
        spawn(move || tickets.take(None))
    }
}

/// All are notified, by a holder of the mutex or after its release.
fn all_at_once<L: RawMutex<Token = ()> + Send + Sync + 'static>(while_holding: bool) {
    let tickets = Tickets::<L>::new();
    let waiting = [tickets.waiter(), tickets.waiter()];
    if while_holding {
        tickets.put_and(2, || _ = tickets.condvar.notify_all());
    } else {
        tickets.put_and(2, || {});
        tickets.condvar.notify_all();
    }
    assert!(waiting.map(|waiter| waiter.join().unwrap()).iter().all(|&taken| taken));
    assert!(!tickets.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

/// Two that wait, one that barges in between, and a notification of all without the mutex.
fn all_beside_a_barger<L: RawMutex<Token = ()> + Send + Sync + 'static>() {
    let tickets = Tickets::<L>::new();
    let waiting = [tickets.waiter(), tickets.waiter()];
    let barger = {
        let tickets = Arc::clone(&tickets);
        spawn(move || tickets.put_and(2, || {}))
    };
    barger.join().unwrap();
    tickets.condvar.notify_all();
    tickets.put_and(0, || {});
    assert!(waiting.map(|waiter| waiter.join().unwrap()).iter().all(|&taken| taken));
}

/// One of the two may give up, at any moment of the other's wait or of its own move.
fn one_gives_up<L: RawMutex<Token = ()> + Send + Sync + 'static>() {
    let tickets = Tickets::<L>::new();
    let patient = tickets.waiter();
    let impatient = {
        let tickets = Arc::clone(&tickets);
        spawn(move || tickets.take(Some(Deadline::after(Duration::from_millis(1)))))
    };
    tickets.put_and(2, || _ = tickets.condvar.notify_all());
    assert!(patient.join().unwrap());
    impatient.join().unwrap();
    assert!(!tickets.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for while_holding in [false, true] {
        explore(Config::bounded(3), move || all_at_once::<Mutex>(while_holding));
        explore(Config { grade: Grade::Cheap, ..Config::bounded(2) }, move || {
            all_at_once::<Mutex>(while_holding)
        });
        explore(Config { grade: Grade::Unordered, ..Config::bounded(1) }, move || {
            all_at_once::<Mutex>(while_holding)
        });
        explore(Config { spurious: 2, ..Config::bounded(2) }, move || all_at_once::<Mutex>(while_holding));
    }
    explore(Config::bounded(2), all_beside_a_barger::<Mutex>);
}

#[test]
fn a_waiter_that_gives_up_strands_nobody_that_was_moved_here() {
    explore(Config { timeouts: 3, ..Config::bounded(2) }, one_gives_up::<Mutex>);
}

#[test]
fn each_of_these_finds_a_mutex_that_forgets_who_else_was_moved() {
    for while_holding in [false, true] {
        finds_bug_saying("deadlock", Config::bounded(3), move || all_at_once::<Forgetful>(while_holding));
    }
    finds_bug_saying("deadlock", Config::bounded(2), all_beside_a_barger::<Forgetful>);
    finds_bug_saying("deadlock", Config { timeouts: 3, ..Config::bounded(2) }, one_gives_up::<Forgetful>);
}
