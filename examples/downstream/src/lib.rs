//! An event: threads wait until it is set. A small protocol of somebody who uses ulocks' door to
//! the machine, and has it checked in the virtual machine.
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | `CLEAR` | not set, nobody sleeps |
//! | `AWAITED` | not set, somebody may sleep |
//! | `SET` | set, for good |
//!
//! `set` makes it `SET` (Release) and wakes all if it was `AWAITED`; a waiter makes it `AWAITED`
//! before it sleeps, and returns when it reads `SET` (Acquire).

use ulocks_core::futex::{Futex, Private};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

const CLEAR: u32 = 0;
const AWAITED: u32 = 1;
const SET: u32 = 2;

/// An event. `BUG` seeds a mistake, for the tests of the tests: 0 is none.
#[derive(Debug)]
pub struct Event<const BUG: u8 = 0>(Futex<Private>);

/// `set` wakes nobody if it finds that nobody sleeps *before* it sets the event.
pub const LOOKS_TOO_EARLY: u8 = 1;
/// `set` publishes nothing.
pub const RELAXED_SET: u8 = 2;

impl<const BUG: u8> Event<BUG> {
    ulocks_core::const_fn! {
        /// An event that is not set.
        pub fn new() -> Self {
            Self(Futex::new(CLEAR))
        }
    }

    /// Sets the event; what the caller did before is visible to whoever sees it set.
    pub fn set(&self) {
        let key = self.0.key();
        let before = match BUG {
            LOOKS_TOO_EARLY => {
                let before = self.0.load(Relaxed);
                self.0.swap(SET, Release);
                before
            }
            RELAXED_SET => self.0.swap(SET, Relaxed),
            _ => self.0.swap(SET, Release),
        };
        if before == AWAITED {
            key.wake(u32::MAX);
        }
    }

    /// Waits until the event is set, or until `deadline`. Whether it is set.
    pub fn wait(&self, deadline: Option<Deadline>) -> bool {
        loop {
            match self.0.compare_exchange(CLEAR, AWAITED, Relaxed, Acquire) {
                Err(SET) => return true,
                _ if deadline.is_some_and(|deadline| deadline.has_passed()) => return false,
                _ => self.0.wait(AWAITED, deadline),
            };
        }
    }
}

impl<const BUG: u8> Default for Event<BUG> {
    fn default() -> Self {
        Self::new()
    }
}
