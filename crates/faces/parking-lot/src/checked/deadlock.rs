//! parking_lot's module `deadlock`: a program asks for the deadlocks that there are.
//!
//! The locks are the checked ones, so a deadlock is also reported by the thread that closes the
//! circle. A program that asks for deadlocks says before that reports are to be printed, by
//! `set_policy(Policy::Warn)` or `ULOCKS_CHECKED=warn`. Otherwise it ends there.
//!
//! # Examples
//! ```
//! use ulocks_parking_lot::checked::deadlock::check_deadlock;
//!
//! for (number, threads) in check_deadlock().iter().enumerate() {
//!     println!("deadlock {number}");
//!     for thread in threads {
//!         println!("thread {:#?}: {:?}", thread.thread_id(), thread.backtrace());
//!     }
//! }
//! ```

use core::fmt;
use ulocks_debug::{Step, new_deadlocks};

/// A thread of a deadlock.
#[derive(Debug)]
pub struct DeadlockedThread {
    backtrace: Backtrace,
}

impl DeadlockedThread {
    /// The number of the thread, which is that of the system.
    pub fn thread_id(&self) -> usize {
        self.backtrace.0.thread.tid as usize
    }

    /// Where the thread waits.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }
}

/// Where a thread waits: the lines of its locks, and its stack, if `ulocks_debug::set_stacks` or
/// `ULOCKS_DEBUG_STACKS` has asked for stacks.
pub struct Backtrace(Step);

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { thread, held, since, asked, at, asked_stack, .. } = &self.0;
        writeln!(f, "{thread} waits for {asked} at {at}, and holds {held} since {since}")?;
        asked_stack.as_ref().map_or(Ok(()), |stack| stack.fmt(f))
    }
}

impl fmt::Debug for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The deadlocks that were not returned before, each with its threads. A thread that waits for
/// itself is one, too.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    let thread = |step: &Step| DeadlockedThread { backtrace: Backtrace(step.clone()) };
    new_deadlocks().iter().map(|report| report.steps().iter().map(thread).collect()).collect()
}
