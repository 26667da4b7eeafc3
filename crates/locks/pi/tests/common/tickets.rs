//! Clients of the condition variable: tickets, and threads that wait for them.

use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::condvar::Wakeup;
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;
use ulocks_pi::{RawPiCondvar, RawPiMutex};
use ulocks_testkit::thread::{Arc, JoinHandle, with};

/// Tickets under a mutex, and the threads that wait for them.
struct Tickets<P: Policy<Scope = Local>> {
    mutex: RawPiMutex<P>,
    condvar: RawPiCondvar<P>,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is accessed under `mutex` only.
unsafe impl<P: Policy<Scope = Local>> Sync for Tickets<P> {}
// SAFETY: its parts are `Send`.
unsafe impl<P: Policy<Scope = Local>> Send for Tickets<P> {}

impl<P: Policy<Scope = Local>> Tickets<P> {
    fn new() -> Arc<Self> {
        Arc::new(Self { mutex: RawPiMutex::new(), condvar: RawPiCondvar::new(), count: UnsafeCell::new(0) })
    }

    fn put_and(&self, count: usize, then: impl FnOnce()) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        self.count.with_mut(|tickets| unsafe { *tickets += count });
        then();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
    }

    /// Waits for a ticket and takes it. With a deadline, it leaves when it is told that this has
    /// passed, without another look: then no notification may have been meant for it.
    fn take(&self, deadline: Option<Deadline>) -> bool {
        self.mutex.lock();
        let taken = loop {
            // SAFETY: the mutex is held.
            let taken = self.count.with_mut(|tickets| unsafe {
                let some = *tickets > 0;
                *tickets -= usize::from(some);
                some
            });
            if taken {
                break true;
            }
            // SAFETY: the mutex is held by this thread.
            let ended = unsafe { self.condvar.wait(&self.mutex, deadline) };
            if ended.expect("nobody dies with the mutex").1 == Wakeup::TimedOut {
                break false;
            }
        };
        // SAFETY: held, by `lock` or by the last `wait`.
        unsafe { self.mutex.unlock(()) };
        taken
    }

    fn waiters(self: &Arc<Self>, count: usize) -> Vec<JoinHandle<bool>> {
        let waiter = |_| with(self, |tickets| tickets.take(None));
        (0..count).map(waiter).collect()
    }

    fn notify_one(&self) {
        self.condvar.notify_one(&self.mutex).expect("the mutex is sound");
    }

    fn notify_all(&self) {
        self.condvar.notify_all(&self.mutex).expect("the mutex is sound");
    }
}

fn all_taken(waiting: Vec<JoinHandle<bool>>) -> bool {
    let taken: Vec<_> = waiting.into_iter().map(|waiter| waiter.join().unwrap()).collect();
    !taken.contains(&false)
}

/// All of `waiters` are notified at once, by a holder of the mutex or after its release.
pub fn all_at_once<P: Policy<Scope = Local>>(waiters: usize, while_holding: bool) {
    let tickets = Tickets::<P>::new();
    let waiting = tickets.waiters(waiters);
    if while_holding {
        tickets.put_and(waiters, || tickets.notify_all());
    } else {
        tickets.put_and(waiters, || {});
        tickets.notify_all();
    }
    assert!(all_taken(waiting));
    assert!(!tickets.mutex.is_locked(), "the mutex is locked although its last holder released it");
}

/// Each of `waiters` is notified by a ticket of its own, from two threads, of which one holds the
/// mutex meanwhile.
pub fn one_by_one<P: Policy<Scope = Local>>(waiters: usize) {
    let tickets = Tickets::<P>::new();
    let waiting = tickets.waiters(waiters);
    let other = with(&tickets, move |tickets| {
        for _ in 0..waiters / 2 {
            tickets.put_and(1, || {});
            tickets.notify_one();
        }
    });
    for _ in waiters / 2..waiters {
        tickets.put_and(1, || tickets.notify_one());
    }
    other.join().unwrap();
    assert!(all_taken(waiting));
}

/// One patient waiter and one that may give up at any moment, also after it was moved to the mutex.
/// There is one ticket and one notification, and a thread that gets it puts another for the other
/// one: if the impatient one leaves without the ticket, the notification was not its own.
pub fn one_gives_up<P: Policy<Scope = Local>>() {
    let tickets = Tickets::<P>::new();
    let waiters = [Some(Deadline::after(Duration::from_millis(1))), None].map(|deadline| {
        with(&tickets, move |tickets| {
            let taken = tickets.take(deadline);
            if taken {
                tickets.put_and(1, || tickets.notify_one());
            }
            taken
        })
    });
    tickets.put_and(1, || tickets.notify_one());
    let [_, patient] = waiters.map(|waiter| waiter.join().unwrap());
    assert!(patient);
    assert!(!tickets.mutex.is_locked(), "the mutex is locked although its last holder released it");
}
