//! A client of the throughput mutex: waiters acquire it in the order in which they queued.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use ulocks_core::Private;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::queue::Rule;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::spin::Spin;
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Id, id, together};
use ulocks_unfair::RawThroughputMutex;

/// A meter that numbers the threads as they queue.
///
/// Its mutex is of the system: no step of a model, and not held across one.
#[derive(Debug)]
pub struct Turns(Mutex<Log>);

#[derive(Debug)]
struct Log {
    arrivals: u64,
    arrived: Vec<Arrival>,
    /// The latest arrival that has acquired as a waiter.
    served: u64,
}

/// A thread has taken the mutex or has queued, by one step.
#[derive(Debug)]
struct Arrival {
    who: Id,
    number: u64,
    /// Whether it has acquired as a waiter: after a sleep, or by a hand-over.
    waited: bool,
}

impl Turns {
    fn with<R>(&self, f: impl FnOnce(&mut Log) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The calling thread holds the mutex. A waiter that has queued came after each one before it.
    fn served(&self) {
        let (number, served) = self.with(|log| {
            let before = log.served;
            let number = log.forget().filter(|arrival| arrival.waited).map(|arrival| arrival.number);
            log.served = number.unwrap_or(before);
            (number, before)
        });
        let Some(number) = number else { return };
        assert!(number > served, "arrival {number} is served after arrival {served}: not in the order");
    }
}

impl Log {
    fn mine(&mut self) -> Option<&mut Arrival> {
        let me = id();
        self.arrived.iter_mut().find(|arrival| arrival.who == me)
    }

    fn forget(&mut self) -> Option<Arrival> {
        let me = id();
        let at = self.arrived.iter().position(|arrival| arrival.who == me)?;
        Some(self.arrived.swap_remove(at))
    }
}

// SAFETY: it notes what happens under a mutex that no thread poisons for it.
unsafe impl Sealed for Turns {}

impl Meter for Turns {
    const INIT: Self = Self(Mutex::new(Log { arrivals: 0, arrived: Vec::new(), served: 0 }));

    fn count(&self, event: Event) {
        self.with(|log| match event {
            // A candidate that has never queued has no number.
            Event::Contended => _ = log.forget(),
            Event::Woken | Event::Reserved => {
                if let Some(arrival) = log.mine() {
                    arrival.waited = true;
                }
            }
            _ => {}
        });
    }

    fn arrive<T, E>(&self, attempt: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let arrived = attempt()?;
        self.with(|log| {
            log.arrivals += 1;
            let number = log.arrivals;
            log.arrived.push(Arrival { who: id(), number, waited: false });
        });
        Ok(arrived)
    }
}

/// Threads that acquire the mutex `rounds` times each, every other one with a deadline if `timed`.
pub fn waiters_keep_their_order<S: Spin, R: Rule>(threads: usize, rounds: usize, timed: bool) {
    type Observed<S, R> = RawThroughputMutex<Private<S, Turns>, R>;
    let shared: Arc<Observed<S, R>> = Arc::new(new_lock());
    let mutex = Arc::clone(&shared);
    together(threads, move |me| {
        for _ in 0..rounds {
            let acquired = if timed && me % 2 == 0 {
                mutex.lock_until(Deadline::after(Duration::from_millis(1))).is_some()
            } else {
                mutex.lock();
                true
            };
            if acquired {
                Metered::meter(&*mutex).served();
                // SAFETY: acquired above.
                unsafe { mutex.unlock(()) };
            }
        }
    });
    assert!(!shared.is_locked());
}
