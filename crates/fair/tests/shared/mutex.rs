//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_fair::RawFairMutex;
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<RawFairMutex<Shared>>(load).check(load);
    shared::exclusion::<RawFairMutex<Shared<NoSpin>>>(load).check(load);
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    let load = Load::default();
    shared::timed::<RawFairMutex<Shared>>(load).check(load);
    shared::timed::<RawFairMutex<Shared<NoSpin>>>(load).check(load);
    // More than have room in line with a deadline.
    let many = Load { threads: 32, operations: 500, ..load };
    shared::timed::<RawFairMutex<Shared>>(many).check(many);
}

#[test]
fn a_zeroed_page_is_an_unlocked_mutex() {
    assert!(shared::zeroed_is_unlocked::<RawFairMutex<Shared>>());
}
