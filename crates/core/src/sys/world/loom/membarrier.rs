//! The barrier on other CPUs, as loom can have it: both sides are a `fence(SeqCst)`, which loom
//! treats exactly.

use super::atomic::{AtomicU32, Ordering, fence};

/// All locks of a model share one place, which is what a lock must bear anyway.
pub(crate) const SLOTS: usize = 1;
/// Whether a read-modify-write is a full fence.
pub(crate) const RMW_IS_FENCE: bool = false;

pub(crate) fn worth() -> u32 {
    0
}

pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

/// By a read-modify-write that does not look at what it replaces: after a plain store to a word
/// that others read-modify-write loom raises false alarms.
#[track_caller]
pub(crate) fn store(word: &AtomicU32, value: u32, order: Ordering) {
    word.swap(value, order);
}

pub(crate) fn ready() -> bool {
    true
}

pub(crate) fn heavy() -> bool {
    fence(Ordering::SeqCst);
    true
}
