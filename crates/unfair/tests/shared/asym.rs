//! The asymmetric mutex, whose releases are exchanges here.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;
use ulocks_unfair::RawAsymMutex;

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<RawAsymMutex<Shared>>(load).check(load);
    shared::exclusion::<RawAsymMutex<Shared<NoSpin>>>(load).check(load);
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    let load = Load::default();
    shared::timed::<RawAsymMutex<Shared>>(load).check(load);
    shared::timed::<RawAsymMutex<Shared<NoSpin>>>(load).check(load);
}

#[test]
fn a_zeroed_page_is_an_unlocked_mutex() {
    assert!(shared::zeroed_is_unlocked::<RawAsymMutex<Shared>>());
}
