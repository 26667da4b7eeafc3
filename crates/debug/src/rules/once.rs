//! Reports that are given once in a process, for a rule and two lines.
//!
//! The pairs that were given are words of a table. A pair has eight places. If they are full, one
//! that was there is forgotten, and may be given again: so no report is lost, however many there
//! are. The table takes no lock, and allocates nothing.

use crate::seen::class::{fold, of_text};
use crate::seen::report::{Place, Rule};
use ulocks_core::sync::{AtomicU64, Ordering::Relaxed};

const PLACES: usize = 8;
/// Room for thousands of pairs. It is memory of the process only where it is used.
const COUNT: usize = 1 << 13;

static GIVEN: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// A hash of a line that does not depend on where the compiler has put it.
pub(crate) fn hash(place: Place) -> u64 {
    let file = of_text(0, place.file());
    fold(file ^ u64::from(place.line()) << 32 ^ u64::from(place.column()))
}

/// Whether the warning of `rule` about these two lines was not given before. It is from now on.
pub(crate) fn is_first(rule: Rule, here: Place, before: Place) -> bool {
    enter(&GIVEN, hash(here) ^ hash(before).rotate_left(21) ^ rule as u64)
}

/// The same for reports that are printed, which may be of a warning that was given.
pub(crate) fn is_printed_first(rule: Rule, here: Place, before: Place) -> bool {
    enter(&GIVEN, hash(here) ^ hash(before).rotate_left(21) ^ rule as u64 ^ 1 << 63)
}

fn enter(table: &[AtomicU64], key: u64) -> bool {
    let key = fold(key) | 1;
    let first = (key >> 16) as usize % (table.len() / PLACES) * PLACES;
    let places = &table[first..first + PLACES];
    for place in places {
        match place.compare_exchange(0, key, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(other) if other == key => return false,
            Err(_) => {}
        }
    }
    places[(key >> 1) as usize % PLACES].swap(key, Relaxed) != key
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

    #[test]
    fn a_full_table_loses_no_report() {
        let table = [const { AtomicU64::new(0) }; 64];
        for key in 0..10_000 {
            assert!(enter(&table, key), "pair {key}");
            assert!(!enter(&table, key), "pair {key} again");
        }
    }
}
