//! Models of the calock.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[path = "../common/advice.rs"]
mod advice;
#[path = "../common/impatient.rs"]
mod impatient;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod sound;

use ulocks_core::model::{Config, Grade};

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// Some deadlines pass: of naps, of waiters that are overdue, of timed waiters. After these none
/// does.
fn timed(preemptions: usize, timeouts: u32) -> Config {
    Config { timeouts, ..Config::bounded(preemptions) }
}

/// All deadlines pass. For two threads: the standby of a lock that is kept for another would never
/// block.
fn at_last(preemptions: usize) -> Config {
    Config { rest_expire: true, ..exact(preemptions) }
}
