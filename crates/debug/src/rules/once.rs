//! Warnings that are given once in a process, for a rule and two lines.
//!
//! The pairs that were given are words of a table, each at the first free place from its own. A
//! table that is full gives no more warnings. It takes no lock, and allocates nothing.

use crate::seen::class::{fold, of_text};
use crate::seen::report::{Place, Rule};
use ulocks_core::sync::{AtomicU64, Ordering::Relaxed};

static GIVEN: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// A hash of a line that does not depend on where the compiler has put it.
pub(crate) fn hash(place: Place) -> u64 {
    let file = of_text(0, place.file());
    fold(file ^ u64::from(place.line()) << 32 ^ u64::from(place.column()))
}

/// Whether the warning of `rule` about these two lines was not given before. It is from now on.
pub(crate) fn is_first(rule: Rule, here: Place, before: Place) -> bool {
    enter(hash(here) ^ hash(before).rotate_left(21) ^ rule as u64)
}

/// The same for reports that are printed, which may be of a warning that was given.
pub(crate) fn is_printed_first(rule: Rule, here: Place, before: Place) -> bool {
    enter(hash(here) ^ hash(before).rotate_left(21) ^ rule as u64 ^ 1 << 63)
}

fn enter(key: u64) -> bool {
    let key = fold(key) | 1;
    let first = key as usize / 2;
    for index in first..first.wrapping_add(GIVEN.len()) {
        match GIVEN[index % GIVEN.len()].compare_exchange(0, key, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(other) if other == key => return false,
            Err(_) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::panic::Location;

    #[test]
    fn a_warning_is_given_once() {
        let (one, other) = (Location::caller(), Location::caller());
        assert!(is_first(Rule::AtMost64, one, other));
        assert!(!is_first(Rule::AtMost64, one, other));
        assert!(is_first(Rule::AtMost64, other, one));
        assert!(is_first(Rule::NoLockInWait, one, other));
    }
}
