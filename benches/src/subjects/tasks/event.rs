//! A mutex of event-listener's `Event` and one flag, as a program builds it that has no lock for
//! tasks.
//!
//! Who finds the flag set listens, looks again, and sleeps. Whoever is woken contends anew with
//! those who arrive: no place in the queue is kept. A release clears the flag, and then notifies
//! one listener. `notify` has the fence that keeps these two in order, against a listener that
//! looks after it has begun to listen.

use super::TaskLock;
use event_listener::{Event, Listener as _};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

pub(super) struct EventMutex {
    is_held: AtomicBool,
    released: Event,
}

pub(super) struct Guard<'a>(&'a EventMutex);

impl EventMutex {
    fn try_lock(&self) -> Option<Guard<'_>> {
        // Acquires what the `Drop` of the guard before has released.
        (!self.is_held.swap(true, Acquire)).then(|| Guard(self))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.is_held.store(false, Release); // to `try_lock`
        self.0.released.notify(1);
    }
}

impl TaskLock for EventMutex {
    type Guard<'a> = Guard<'a>;

    fn new() -> Self {
        Self { is_held: AtomicBool::new(false), released: Event::new() }
    }

    async fn lock(&self) -> Guard<'_> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            let release = self.released.listen();
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            release.await;
        }
    }

    fn lock_blocking(&self) -> impl Sized {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            let release = self.released.listen();
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            release.wait();
        }
    }
}
