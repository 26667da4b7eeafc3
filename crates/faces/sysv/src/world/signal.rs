//! Signals of the virtual machine: there are none in the models.

use super::sys::{self, Answer};
use core::cell::Cell;
use ulocks_core::sync::AtomicU32;

/// A thread that is in a section until this is dropped.
#[derive(Debug, Default)]
pub struct HeldBack;

impl HeldBack {
    /// (enter)
    pub fn new() -> Self {
        Self
    }
}

impl Drop for HeldBack {
    /// (leave)
    fn drop(&mut self) {}
}

/// Forgets the handlers that have run on the calling thread.
pub fn forget_handlers() {}

/// Whether a handler has run since.
pub fn has_handled() -> bool {
    false
}

ulocks_core::model::thread_local! {
    static IS_NAPPING: Cell<bool> = Cell::new(false);
}

/// The thread goes to sleep in a set.
pub fn begin_nap() {
    IS_NAPPING.set(true);
}

/// Whether nobody has taken the set since.
pub fn is_napping() -> bool {
    IS_NAPPING.get()
}

/// Takes the set: whether the caller has it now.
pub fn end_nap() -> bool {
    IS_NAPPING.replace(false)
}

/// Sleeps on `word` while it is `expected`, and is woken by each of `bits`.
///
/// # Errors
/// ETIMEDOUT; EAGAIN if the word is another one.
pub fn nap(word: &AtomicU32, expected: u32, until: u64, bits: u32) -> Answer<()> {
    sys::wait_bits(word, expected, until, bits)
}
