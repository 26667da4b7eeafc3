//! Programs that use the protocols, small enough for a model: each is the body of one execution.

#![allow(dead_code)] // Loom's models use a part of them.

pub mod condvar;
pub mod once;
pub mod rwlock;

use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::Relaxed;

/// How many threads have come to a place.
pub struct Arrivals(Futex<Local>);

impl Arrivals {
    pub fn new() -> Self {
        Self(Futex::new(0))
    }

    pub fn arrive(&self) {
        self.0.fetch_add(1, Relaxed);
        self.0.key().wake(u32::MAX);
    }

    /// Blocks until `threads` have arrived.
    pub fn wait_for(&self, threads: usize) {
        loop {
            let count = self.0.load(Relaxed);
            if count as usize == threads {
                return;
            }
            self.0.wait(count, None);
        }
    }
}
