//! A mutex of event-listener's `Event` and one flag, as a program builds it that has no lock for
//! tasks.
//!
//! An arriving task that finds the flag set listens, looks again, and sleeps. A waiter that is
//! woken contends anew with arriving ones: no place in the queue is kept. A release clears the
//! flag, and then notifies one listener. `notify` has the fence that keeps these two in order,
//! against a listener that looks after it has begun to listen.

use super::TaskLock;
use event_listener::{Event, EventListener, Listener as _};
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

    /// The lock, or a listener for a release that comes after the last look.
    fn try_or_listen(&self) -> Result<Guard<'_>, EventListener> {
        if let Some(guard) = self.try_lock() {
            return Ok(guard);
        }
        let release = self.released.listen();
        self.try_lock().ok_or(release)
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
            match self.try_or_listen() {
                Ok(guard) => return guard,
                Err(release) => release.await,
            }
        }
    }

    fn lock_blocking(&self) -> impl Sized {
        loop {
            match self.try_or_listen() {
                Ok(guard) => return guard,
                Err(release) => release.wait(),
            }
        }
    }
}
