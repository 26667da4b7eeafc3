//! Keys of acquisitions that are known to break no rule, for all threads.
//!
//! A thread remembers a few keys itself (`validated.rs`). What it does not remember it looks for
//! here, before it takes the lock of the graph: among locks of one class, each pair is a key.
//!
//! A key has eight places. If they are full, a key that was there is forgotten.
//! So a look may fail that should not, and the graph is asked once more. A key that is found was
//! validated, since a word is read as it was written.

use ulocks_core::sync::{AtomicU64, Ordering::Relaxed};
use ulocks_core::{each, sync_static};

const PLACES: usize = 8;
/// Room for the pairs of some 250 locks that are all nested in each other. It is memory of the
/// process only where it is used.
const COUNT: usize = if cfg!(modelled) { PLACES } else { 1 << 15 };

sync_static! {
    static KNOWN: [AtomicU64; COUNT] = each!(AtomicU64::new(0); COUNT);
}

/// The places of a key.
#[inline]
fn places(key: u64) -> &'static [AtomicU64] {
    let first = (key >> 16) as usize % (COUNT / PLACES) * PLACES;
    &KNOWN[first..first + PLACES]
}

/// Whether some thread has found that an acquisition with this key breaks no rule.
#[inline]
pub(crate) fn is_known(key: u64) -> bool {
    places(key).iter().any(|place| place.load(Relaxed) == key)
}

/// An acquisition with this key breaks no rule.
pub(crate) fn remember(key: u64) {
    let places = places(key);
    let free = places.iter().find(|place| [0, key].contains(&place.load(Relaxed)));
    free.unwrap_or(&places[(key >> 48) as usize % PLACES]).store(key, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_until_its_places_are_full() {
        let key = |number: u64| number << 48 | 0xbeef << 16;
        assert!(!is_known(key(1)));
        (1..=8).for_each(|number| remember(key(number)));
        assert!((1..=8).all(|number| is_known(key(number))));
        remember(key(9));
        assert!(is_known(key(9)));
        assert_eq!((1..=8).filter(|&number| is_known(key(number))).count(), 7);
    }
}
