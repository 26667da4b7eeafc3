//! An event: threads wait until it is set. It is a small protocol on the atomics and futexes of
//! `ulocks_core`, and is checked in the virtual machine.
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | `CLEAR` | not set, no waiter sleeps |
//! | `AWAITED` | not set, a waiter may sleep |
//! | `SET` | set, and stays set |
//!
//! `set` stores `SET` (Release). If the word was `AWAITED`, it wakes all waiters. A waiter stores
//! `AWAITED` before it sleeps, and returns when it reads `SET` (Acquire).

use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

const CLEAR: u32 = 0;
const AWAITED: u32 = 1;
const SET: u32 = 2;

/// An event. `BUG` seeds a bug that the tests must find: 0 is none.
#[derive(Debug)]
pub struct Event<const BUG: u8 = 0>(Futex<Local>);

/// `set` checks for waiters *before* it sets the event, so it may miss one.
pub const LOOKS_TOO_EARLY: u8 = 1;
/// `set` is Relaxed, so it publishes nothing.
pub const RELAXED_SET: u8 = 2;

impl<const BUG: u8> Event<BUG> {
    ulocks_core::const_fn! {
        /// An event that is not set.
        pub fn new() -> Self {
            Self(Futex::new(CLEAR))
        }
    }

    /// Sets the event. What the caller did before is visible to a thread that sees it set.
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

    /// Waits until the event is set, or until `deadline`. Returns whether it is set.
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
