//! The machine clients pass on the sound lock, and fail on the bug they are there for.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use ulocks_core::futex::Private;
use ulocks_testkit::broken::{self, Plain, PlainShared, ThreeState};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::{model, shared};

type Broken<const BUG: u8> = ThreeState<Private, BUG>;

#[test]
fn the_model_clients_run_on_the_machine() {
    for threads in 2..=3 {
        model::exclusion::<Plain>(threads);
        model::no_lost_wake::<Plain>(threads, 100);
        model::timeout_vs_unlock::<Plain>(threads);
        model::last_unlocker_frees::<Plain>(threads);
        model::try_lock_coherence::<Plain>(threads);
    }
}

#[test]
fn stress_passes_on_a_sound_lock() {
    let load = Load::default();
    stress::exclusion::<Plain>(load).check(load);
    stress::exclusion::<Plain>(Load { shuffle: true, ..load }).check(load);
    stress::timed::<Plain>(load).check(load);
    stress::cancel::<Plain>(load).check(load);
    let (load, counts) = stress::oversubscribed::<Plain>(1_000);
    counts.check(load);
    assert_eq!(counts.gave_up, 0);
}

#[test]
fn signals_reach_the_waiters() {
    let load = Load { signals: true, ..Load::default() };
    let counts = stress::timed::<Plain>(load);
    counts.check(load);
    assert!(counts.signals > 0, "the storm passed without a signal");
}

#[test]
fn hand_overs_add_up() {
    let counts = stress::hand_over_counts::<Plain>(3, 1_000);
    assert_eq!(counts.to_another + counts.to_itself, 3_000);
    assert!(
        counts.to_another >= 3,
        "each thread has the lock after another at least once, or first: {counts:?}"
    );
}

#[test]
fn the_last_unlocker_may_unmap() {
    assert_eq!(stress::last_unlocker_unmaps::<Plain>(4, 200), 200);
}

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<PlainShared>(load).check(load);
    shared::timed::<PlainShared>(load).check(load);
    assert!(shared::zeroed_is_unlocked::<PlainShared>());
}

/// Exclusion fails on a lock that lets two in. The window is two instructions wide, so the threads are kept busy until a
/// pass would be a wonder.
#[test]
fn exclusion_finds_a_lost_update() {
    let load = Load { threads: 4, operations: 200_000, hold: 5, shuffle: true, ..Load::default() };
    let found = (0..20).any(|_| {
        let counts = stress::exclusion::<Broken<{ broken::LOAD_THEN_STORE }>>(load);
        counts.counter != counts.total()
    });
    assert!(found, "no update was lost in 16 million acquisitions of a lock that does not exclude");
}

/// Runs a client on a broken lock in a process of its own.
fn doomed(how: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_doomed")).arg(how).output().expect("the program beside this test")
}

#[test]
fn last_unlocker_unmaps_finds_a_touch_after_the_release() {
    let output = doomed("touch-after-release");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
}

#[test]
fn the_watchdog_finds_a_lost_wake_up() {
    for how in ["no-wake", "timeout-loses-wake"] {
        let output = doomed(how);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{how}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("stranded: not finished after") && text.contains("thread "), "{how}: {text}");
    }
}

#[test]
fn a_sound_release_wakes_the_sleeper() {
    assert!(doomed("sound").status.success());
}
