//! What subjects are put through. Each workload is a [`Task`](crate::run::child::Task): a
//! specification, carried out in a process of its own, and its outcome.

pub mod cell;
pub mod condvars;
pub mod figure;
pub mod handoff;
pub mod hogs;
pub mod readers;
pub mod semaphores;
pub mod trial;
pub mod uncontended;
pub mod uncontended_sets;

use serde::{Deserialize, Serialize};

/// Mean times inside and outside the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// Inside, in nanoseconds.
    pub hold_ns: u64,
    /// Outside, in nanoseconds.
    pub non_hold_ns: u64,
}

impl Workload {
    /// No time inside or outside: the loop is the lock and nothing else, and clock reads would be
    /// most of it.
    pub fn is_bare(self) -> bool {
        self.hold_ns == 0 && self.non_hold_ns == 0
    }
}
