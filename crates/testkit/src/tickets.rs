//! Clients of a lock's condition variable in a model: tickets, and threads that wait for them.

use crate::new_lock;
use crate::thread::{JoinHandle, with};
use core::time::Duration;
use std::sync::Arc;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;

/// Tickets under a mutex.
pub struct Counter<L: RawMutex> {
    /// The mutex.
    pub mutex: L,
    /// How many tickets there are; under the mutex.
    pub tickets: UnsafeCell<usize>,
}

// SAFETY: `tickets` is accessed under `mutex` only.
unsafe impl<L: RawMutex + Sync> Sync for Counter<L> {}
// SAFETY: its parts are `Send`.
unsafe impl<L: RawMutex + Send> Send for Counter<L> {}

impl<L: RawMutex> Default for Counter<L> {
    fn default() -> Self {
        Self { mutex: new_lock(), tickets: UnsafeCell::new(0) }
    }
}

impl<L: RawMutex> Counter<L> {
    /// Puts `count` tickets there and calls `then` with the mutex still held.
    pub fn put_and(&self, count: usize, then: impl FnOnce()) {
        let token = self.mutex.lock();
        // SAFETY: the mutex is held.
        self.tickets.with_mut(|tickets| unsafe { *tickets += count });
        then();
        // SAFETY: the token is from the acquisition above.
        unsafe { self.mutex.unlock(token) };
    }

    /// Puts `count` tickets there.
    pub fn put(&self, count: usize) {
        self.put_and(count, || {});
    }

    /// Waits for a ticket and takes it; with a deadline, gives up when that has passed and there is
    /// still none.
    pub fn take(&self, condvar: &RawCondvar<L>, deadline: Option<Deadline>) -> bool {
        let mut token = self.mutex.lock();
        let mut timed_out = false;
        let taken = loop {
            // SAFETY: the mutex is held.
            let taken = self.tickets.with_mut(|tickets| unsafe {
                let some = *tickets > 0;
                *tickets -= usize::from(some);
                some
            });
            if taken || timed_out {
                break taken;
            }
            // SAFETY: the mutex is held by this thread, by this token.
            let (held, wakeup) = unsafe { condvar.wait(&self.mutex, token, deadline) };
            token = held;
            timed_out = wakeup == Wakeup::TimedOut;
        };
        // SAFETY: the token is from `lock` or from the last `wait`.
        unsafe { self.mutex.unlock(token) };
        taken
    }
}

/// Tickets, and the threads that wait for them.
struct Tickets<L: RawMutex> {
    counter: Counter<L>,
    condvar: RawCondvar<L>,
}

impl<L: RawMutex + Send + Sync + 'static> Tickets<L> {
    fn new() -> Arc<Self> {
        Arc::new(Self { counter: Counter::default(), condvar: RawCondvar::new() })
    }

    /// Threads that wait for a ticket each.
    fn waiters(self: &Arc<Self>, count: usize) -> Vec<JoinHandle<bool>> {
        let waiter = |_| with(self, |tickets| tickets.counter.take(&tickets.condvar, None));
        (0..count).map(waiter).collect()
    }
}

/// All of `waiters` are notified, by a holder of the mutex or after its release.
///
/// # Panics
/// If a thread that should have got a ticket got none, or if the mutex is left locked.
pub fn all_at_once<L: RawMutex + Send + Sync + 'static>(waiters: usize, while_holding: bool) {
    let tickets = Tickets::<L>::new();
    let waiting = tickets.waiters(waiters);
    if while_holding {
        tickets.counter.put_and(waiters, || _ = tickets.condvar.notify_all());
    } else {
        tickets.counter.put(waiters);
        tickets.condvar.notify_all();
    }
    assert!(all_taken(waiting));
    assert!(!tickets.counter.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

/// `waiters` are notified one after the other, by a holder of the mutex or after its release,
/// beside a thread that acquires the mutex meanwhile.
///
/// # Panics
/// If a waiter gets no ticket, or if the mutex is left locked.
pub fn one_by_one<L: RawMutex + Send + Sync + 'static>(waiters: usize, while_holding: bool) {
    let tickets = Tickets::<L>::new();
    let waiting = tickets.waiters(waiters);
    let locker = with(&tickets, |tickets| tickets.counter.put(0));
    for _ in 0..waiters {
        if while_holding {
            tickets.counter.put_and(1, || _ = tickets.condvar.notify_one());
        } else {
            tickets.counter.put(1);
            tickets.condvar.notify_one();
        }
    }
    locker.join().unwrap();
    assert!(all_taken(waiting));
    assert!(!tickets.counter.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

/// Some that wait, one that barges in between, and a notification of all without the mutex.
///
/// # Panics
/// If a thread that should have got a ticket got none.
pub fn all_beside_a_barger<L: RawMutex + Send + Sync + 'static>(waiters: usize) {
    let tickets = Tickets::<L>::new();
    let waiting = tickets.waiters(waiters);
    let barger = with(&tickets, move |tickets| tickets.counter.put(waiters));
    barger.join().unwrap();
    tickets.condvar.notify_all();
    tickets.counter.put(0);
    assert!(all_taken(waiting));
}

/// One beside the patient ones may give up, at any moment of the others' waits or of its own move.
///
/// # Panics
/// If a thread that should have got a ticket got none, or if the mutex is left locked.
pub fn one_gives_up<L: RawMutex + Send + Sync + 'static>(patient: usize) {
    let tickets = Tickets::<L>::new();
    let waiting = tickets.waiters(patient);
    let impatient = with(&tickets, |tickets| {
        tickets.counter.take(&tickets.condvar, Some(Deadline::after(Duration::from_millis(1))))
    });
    tickets.counter.put_and(patient + 1, || _ = tickets.condvar.notify_all());
    assert!(all_taken(waiting));
    impatient.join().unwrap();
    assert!(!tickets.counter.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

/// All of `impatient` may give up at any moment, also at the same time. Nobody notifies them.
///
/// # Panics
/// If a thread got a ticket, or if the mutex is left locked.
pub fn all_give_up<L: RawMutex + Send + Sync + 'static>(impatient: usize) {
    let tickets = Tickets::<L>::new();
    let waiter = |_| {
        with(&tickets, |tickets| {
            tickets.counter.take(&tickets.condvar, Some(Deadline::after(Duration::from_millis(1))))
        })
    };
    let waiting: Vec<_> = (0..impatient).map(waiter).collect();
    assert!(waiting.into_iter().all(|waiter| !waiter.join().unwrap()));
    assert!(!tickets.counter.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

fn all_taken(waiting: Vec<JoinHandle<bool>>) -> bool {
    let taken: Vec<_> = waiting.into_iter().map(|waiter| waiter.join().unwrap()).collect();
    !taken.contains(&false)
}
