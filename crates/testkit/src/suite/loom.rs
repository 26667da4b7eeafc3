//! The models in loom's world, and their bounds.
//!
//! The virtual machine finds every planted bug, and loom need not. So loom runs what two threads do
//! with two preemptions, and one chain of wake-ups: a fraction of a second for each.

use crate::model;
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;

/// Wake-ups as in the kernel.
pub fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
pub fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// So many deadlines pass. The first look at the deadline is `lock_until`'s own, the next ones
/// decide how the waits end.
pub fn timed(preemptions: usize, timeouts: u32) -> Config {
    Config { timeouts, ..Config::bounded(preemptions) }
}

/// Explores [`model::exclusion`].
pub fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::exclusion::<L>(2));
}

/// Explores [`model::no_lost_wake`], also with wake-ups that order nothing, and a chain of two.
pub fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::no_lost_wake::<L>(2, 2));
    explore(unordered(1), || model::no_lost_wake::<L>(2, 2));
    explore(exact(1), || model::no_lost_wake::<L>(3, 1));
}

/// Explores [`model::timeout_vs_unlock`].
pub fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(2, 2), || model::timeout_vs_unlock::<L>(2));
}

/// Explores [`model::last_unlocker_frees`].
pub fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(2), || model::last_unlocker_frees::<L>(2));
}
