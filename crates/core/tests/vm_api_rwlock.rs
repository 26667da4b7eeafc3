//! The typed reader-writer lock on the virtual machine: readers share, a writer is alone, and a
//! lock that does not see to it is caught by its data.
#![cfg(world = "vm")]

mod rwlock_clients;

use rwlock_clients as clients;
use ulocks_core::model::{Config, explore, finds_bug_saying};

fn some() -> Config {
    Config::sampled(2_000)
}

fn timed() -> Config {
    some()
}

#[test]
fn readers_see_a_writer_whole() {
    explore(some(), || clients::readers_and_a_writer(1));
    explore(some(), || clients::readers_and_a_writer(4));
}

#[test]
fn readers_that_nothing_excludes_are_no_race() {
    explore(some(), clients::unlocked_readers);
}

#[test]
fn a_lock_that_locks_nothing_is_caught_by_its_data() {
    finds_bug_saying("data race", some(), clients::unlocked_reader_and_writer);
}

#[test]
fn a_readers_access_lasts_as_long_as_its_guard() {
    finds_bug_saying("at the same time", some(), || clients::write_beside_a_read_guard(false));
    finds_bug_saying("at the same time", some(), || clients::write_beside_a_read_guard(true));
}

/// The access of the upgrading reader itself is open while the raw lock upgrades. So a write in
/// between is found, although nothing is read then.
#[test]
fn upgrades_change_the_access() {
    explore(some(), clients::upgrades);
}

#[test]
fn downgrades_change_the_access() {
    explore(some(), clients::downgrades);
}

#[test]
fn every_way_of_release_releases() {
    explore(some(), clients::every_way_of_release_releases);
}

#[test]
fn timed_acquisitions_end_both_ways() {
    explore(timed(), clients::timed);
}

#[test]
fn forgotten_guards_can_be_made_up_for() {
    explore(some(), clients::forgotten_guards);
}

#[test]
fn acquisitions_can_be_of_another_kind() {
    explore(some(), clients::by_hand);
}

#[cfg(feature = "arc_lock")]
#[test]
fn a_guard_can_own_a_share_of_its_lock() {
    explore(some(), clients::shares);
}
