//! An event: threads wait until it is set.

use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

const CLEAR: u32 = 0;
const AWAITED: u32 = 1;
const SET: u32 = 2;

/// An event that happens once.
#[derive(Debug)]
pub struct Event(Futex<Local>);

impl Event {
    /// An event that is not set.
    pub fn new() -> Self {
        Self(Futex::new(CLEAR))
    }

    /// Sets the event. What the caller did before is visible to a thread that has waited.
    pub fn set(&self) {
        let key = self.0.key();
        if self.0.swap(SET, Release) == AWAITED {
            key.wake(u32::MAX);
        }
    }

    /// Waits until the event is set.
    pub fn wait(&self) {
        while self.0.compare_exchange(CLEAR, AWAITED, Relaxed, Acquire) != Err(SET) {
            self.0.wait(AWAITED, None);
        }
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}
