//! The bounds of the models in loom's world.

use ulocks_core::model::{Config, Grade};

/// Wake-ups as in the kernel.
pub fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up wakes every sleeper of the key.
pub fn cheap(preemptions: usize) -> Config {
    Config { grade: Grade::Cheap, ..Config::bounded(preemptions) }
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
