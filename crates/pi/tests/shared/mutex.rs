//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_pi::RawPiMutex;
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;

fn load() -> Load {
    Load { operations: 4_000, ..Load::default() }
}

#[test]
fn processes_exclude_one_another() {
    shared::exclusion::<RawPiMutex<Shared>>(load()).check(load());
    shared::exclusion::<RawPiMutex<Shared<NoSpin>>>(load()).check(load());
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    shared::timed::<RawPiMutex<Shared>>(load()).check(load());
    shared::timed::<RawPiMutex<Shared<NoSpin>>>(load()).check(load());
}

#[test]
fn a_zeroed_page_is_an_unlocked_mutex() {
    assert!(shared::zeroed_is_unlocked::<RawPiMutex<Shared>>());
}
