//! What Linux has beyond threads and futexes, as calls on an engine: priority-inheriting futexes,
//! processes, robust lists, signals. Only the explorer has it.

use super::{At, Engine};
use crate::{pi, signal};
use core::ops::Range;

/// An engine that has all of it.
pub trait Linux {
    /// A call for a priority-inheriting futex.
    fn pi(&self, call: pi::Call, at: At) -> Result<u32, pi::Refusal>;
    /// Starts the first thread of a new process.
    fn spawn_process(&self, body: Box<dyn FnOnce()>, at: At) -> usize;
    fn current_process(&self) -> usize;
    /// The memory at `addresses` is a mapping of `region`. Not a step.
    fn map(&self, addresses: Range<usize>, region: usize);
    /// `set_robust_list` of the calling thread. Not a step.
    fn set_robust_list(&self, head: usize);
    fn signals(&self, request: signal::Request, at: At) -> u64;
}

/// The engine, which has to have `what`.
pub(crate) fn demand<'a>(engine: &'a dyn Engine, what: &str) -> &'a dyn Linux {
    let linux = engine.linux();
    linux.unwrap_or_else(|| panic!("{what} exists in an exploration only: the cost model has none"))
}
