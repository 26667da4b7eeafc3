//! The rules.
use super::window::Window;
use crate::lock::traits::Initial;

/// Who may take a free word past the queue, and whom a release wakes.
pub trait Rule: Send + Sync + 'static {
    /// Nobody passes the queue.
    const IN_ORDER: bool;
    /// For how long others may overtake the candidate, in nanoseconds.
    const BOUND_NS: u64;
    /// The room for the window.
    type Room: Room;
}

/// What a rule keeps in the lock beside the word.
pub trait Room: Initial + Send + Sync + 'static {
    /// The window, if the rule has one.
    fn window(&self) -> Option<&Window>;
}

/// Nobody passes the queue.
#[derive(Debug)]
pub enum InOrder {}

impl Rule for InOrder {
    const IN_ORDER: bool = true;
    const BOUND_NS: u64 = 0;
    type Room = Window;
}

/// Any thread takes a free lock, until the candidate has been overtaken for `NS` nanoseconds, by
/// default 100 us.
#[derive(Debug)]
pub enum After<const NS: u64 = 100_000> {}

/// At once: a woken waiter that finds the lock taken is the next to acquire it, but for threads
/// that acquire in the same moment. Long's hand-off.
#[derive(Debug)]
pub enum HandOff {}

impl<const NS: u64> Rule for After<NS> {
    const IN_ORDER: bool = false;
    const BOUND_NS: u64 = NS;
    type Room = Nothing;
}

impl Rule for HandOff {
    const IN_ORDER: bool = false;
    const BOUND_NS: u64 = 0;
    type Room = Nothing;
}

/// No room at all.
#[derive(Debug)]
pub struct Nothing(());

crate::initial!([] Window = Self::new());
crate::initial!([] Nothing = Self(()));

impl Room for Window {
    fn window(&self) -> Option<&Window> {
        Some(self)
    }
}

impl Room for Nothing {
    fn window(&self) -> Option<&Window> {
        None
    }
}
