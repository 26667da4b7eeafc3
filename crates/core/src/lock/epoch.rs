//! Epochs of what has no room for a number of its own: a counter for each key, in static memory.
//!
//! A debugging aid that keeps a note of an object by its address cannot see that the object is gone
//! and that another one has its place. If the new object can prove that the note is older than
//! itself, it advances the epoch of the key, and all notes with an older epoch are void. Keys share
//! counters, so an epoch may advance without a reason. Hence a note that is void says nothing, and
//! only a note that is not void may be relied on.
//!
//! In every world these are plain atomics of the machine: they are no part of a protocol, and no
//! model looks at them.

use crate::sys::sync::place_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, fence};

static EPOCHS: [AtomicU32; 1 << 15] = [const { AtomicU32::new(0) }; 1 << 15];

/// The counter of a key.
fn of_key(key: usize) -> &'static AtomicU32 {
    &EPOCHS[place_of(key, EPOCHS.len())]
}

/// The epoch of a key. A caller that has read, of whatever the object changes after [`advance`],
/// what it changed, reads this epoch or a later one.
#[must_use]
pub fn current(key: usize) -> u32 {
    fence(Acquire);
    of_key(key).load(Relaxed)
}

/// Makes all notes of the key void. It comes before what the caller changes after it.
pub fn advance(key: usize) {
    of_key(key).fetch_add(1, Relaxed);
    fence(Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_for_its_key() {
        // An address of this test's own, so that no other test is likely to advance it.
        let here = 0;
        let key = core::ptr::from_ref(&here).addr();
        let before = current(key);
        advance(key);
        assert_ne!(current(key), before);
    }

    #[test]
    fn neighbours_have_counters_of_their_own() {
        let mut counters: Vec<_> =
            (0..64).map(|index| core::ptr::from_ref(of_key(0x7000 + 8 * index)).addr()).collect();
        counters.sort_unstable();
        counters.dedup();
        assert!(counters.len() > 60, "{} counters for 64 keys", counters.len());
    }
}
