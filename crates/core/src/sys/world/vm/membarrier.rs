//! The barrier on other CPUs, as the virtual machine has it: on every thread, wherever it is, so
//! that the light side is as free as on the machine. A barrier that is missing there shows as the
//! compiler's freedom only: a model of that exchanges the two accesses.

use super::atomic::{AtomicU32, Ordering, compiler_fence};
use ulocks_vm::sync::{membarrier, pauses_in};

/// All locks of a model share one place, which is what a lock must bear anyway.
pub(crate) const SLOTS: usize = 1;
/// Whether a read-modify-write is a full fence.
pub(crate) const RMW_IS_FENCE: bool = false;

/// As on the machine for the cost model, which counts; nothing for an explorer, which has room for
/// one pause in any time.
pub(crate) fn worth() -> u32 {
    if pauses_in(u32::MAX) == 1 { 0 } else { 2_000 }
}

pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

#[track_caller]
pub(crate) fn store(word: &AtomicU32, value: u32, order: Ordering) {
    word.store(value, order);
}

pub(crate) fn ready() -> bool {
    true
}

#[track_caller]
pub(crate) fn heavy() -> bool {
    membarrier();
    true
}
