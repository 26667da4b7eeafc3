//! The typed reader-writer lock: readers share, a writer is alone, and a lock that does not see to
//! it is caught by its data.

use super::{DURING_READ, OTHERS, RACE, some, timed};
use crate::rwlock_clients as clients;
use ulocks_core::model::{explore, finds_bug_saying};

#[test]
fn readers_see_a_writer_whole() {
    explore(some(2), || clients::readers_and_a_writer(1));
    explore(some(2), || clients::readers_and_a_writer(OTHERS as usize));
}

#[test]
fn readers_that_nothing_excludes_are_no_race() {
    explore(some(2), clients::unlocked_readers);
}

#[test]
fn a_lock_that_locks_nothing_is_caught_by_its_data() {
    finds_bug_saying(RACE, some(2), clients::unlocked_reader_and_writer);
}

#[test]
fn a_readers_access_lasts_as_long_as_its_guard() {
    finds_bug_saying(DURING_READ, some(2), || clients::write_beside_a_read_guard(false));
    finds_bug_saying(DURING_READ, some(2), || clients::write_beside_a_read_guard(true));
}

/// The access of the upgrading reader itself is open while the raw lock upgrades. So a write in
/// between is found, although nothing is read then.
#[test]
fn upgrades_change_the_access() {
    explore(some(2), clients::upgrades);
}

#[test]
fn downgrades_change_the_access() {
    explore(some(2), clients::downgrades);
}

#[test]
fn every_way_of_release_releases() {
    explore(some(2), clients::every_way_of_release_releases);
}

#[test]
fn timed_acquisitions_end_both_ways() {
    explore(timed(2, some(2)), clients::timed);
    explore(timed(2, some(2)), clients::interruptible);
}

#[test]
fn forgotten_guards_can_be_made_up_for() {
    explore(some(2), clients::forgotten_guards);
}

#[test]
fn acquisitions_can_be_of_another_kind() {
    explore(some(2), clients::by_hand);
}

#[cfg(feature = "arc_lock")]
#[test]
fn a_guard_can_own_a_share_of_its_lock() {
    explore(some(2), clients::shares);
}
