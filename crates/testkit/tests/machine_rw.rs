//! The machine clients for reader-writer locks pass on the sound lock, and fail on the bug they are there for.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use ulocks_core::futex::Private;
use ulocks_testkit::broken::rw::{self as broken, CountedRw, PlainRw, PlainRwShared};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw as model, upgrade};
use ulocks_testkit::rw::{shared, stress};
use ulocks_testkit::stress::Load;

type Broken<const BUG: u8> = CountedRw<Private, BUG>;

#[test]
fn the_model_clients_run_on_the_machine() {
    model::exclusion::<PlainRw>(&[Read, Write, Read, Write]);
    model::no_lost_wake::<PlainRw>(&[Read, Write, Read, Write], 100);
    model::readers_meet::<PlainRw>(8);
    model::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead, Write, TimedWrite]);
    model::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite, Write]);
    model::give_up_while_held::<PlainRw>(Read, 3);
    model::give_up_while_held::<PlainRw>(Write, 3);
    model::try_coherence::<PlainRw>(2, 2);
    model::last_unlocker_frees::<PlainRw>(1, 2);
    upgrade::upgradable_beside_readers::<PlainRw>(4);
    for how in [How::Wait, How::TryFirst, How::Timed] {
        upgrade::upgrades::<PlainRw>(how, 2, 2, 1);
        upgrade::round_trips::<PlainRw>(how, 2, 2);
    }
    upgrade::upgrade_waits_for_readers::<PlainRw>();
    upgrade::downgrades::<PlainRw>(2, 2);
    upgrade::downgrade_meets_readers::<PlainRw>(4);
}

#[test]
fn stress_passes_on_a_sound_lock() {
    let load = Load::default();
    stress::mixed::<PlainRw>(load).check();
    stress::mixed::<PlainRw>(Load { shuffle: true, ..load }).check();
    stress::cancel::<PlainRw>(load).check();
    stress::upgrading::<PlainRw>(load).check();
    let counts = stress::oversubscribed::<PlainRw>(500);
    counts.check();
    assert_eq!(counts.gave_up, 0);
}

#[test]
fn signals_reach_the_waiters() {
    let counts = stress::cancel::<PlainRw>(Load { signals: true, ..Load::default() });
    counts.check();
    assert!(counts.signals > 0, "the storm passed without a signal");
}

#[test]
fn the_last_unlocker_may_unmap() {
    assert_eq!(stress::last_unlocker_unmaps::<PlainRw>(1, 3, 100), 100);
    assert_eq!(stress::last_unlocker_unmaps::<PlainRw>(0, 3, 100), 100);
    assert!(stress::last_unlocker_unmaps::<PlainRw>(2, 2, 100) <= 100);
}

#[test]
fn processes_exclude_one_another() {
    shared::mixed::<PlainRwShared>(Load::default()).check();
    assert!(shared::zeroed_is_unlocked::<PlainRwShared>());
}

#[test]
fn stress_finds_readers_and_writers_that_meet() {
    let load = Load { threads: 4, operations: 20_000, hold: 50, shuffle: true, ..Load::default() };
    let found = (0..20).any(|_| stress::mixed::<Broken<{ broken::WRITE_IGNORES_READERS }>>(load).torn > 0);
    assert!(found, "nobody saw half a write of a writer that does not look for readers");
}

#[test]
fn stress_finds_upgrades_and_downgrades_that_let_go() {
    let load = Load { threads: 4, operations: 20_000, hold: 50, shuffle: true, ..Load::default() };
    let upgrade = || stress::upgrading::<Broken<{ broken::UPGRADE_LETS_GO }>>(load).torn > 0;
    assert!((0..20).any(|_| upgrade()), "nobody wrote in between an upgrade that lets go");
    let downgrade = || stress::upgrading::<Broken<{ broken::DOWNGRADE_LETS_GO }>>(load).torn > 0;
    assert!((0..20).any(|_| downgrade()), "nobody wrote in between a downgrade that lets go");
}

/// Runs a client on a broken lock in a process of its own.
fn doomed(how: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_doomed")).arg(how).output().expect("the program beside this test")
}

#[test]
fn last_unlocker_unmaps_finds_a_touch_after_the_release_of_a_writer() {
    let output = doomed("rw-touch-after-write");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
}

/// Of sixteen users one is a reader; if that one happens to be the last, its late touch harms nobody.
#[test]
fn last_unlocker_unmaps_finds_a_touch_after_the_release_of_a_reader() {
    let died = (0..4).any(|_| doomed("rw-touch-after-read").status.signal() == Some(libc::SIGSEGV));
    assert!(died, "four times the reader was the last of sixteen, or nobody noticed");
}

#[test]
fn the_watchdog_finds_readers_that_are_not_woken() {
    let output = doomed("rw-no-wake");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("stranded: not finished after") && text.contains("thread "), "{text}");
}

#[test]
fn a_sound_release_wakes_the_writer() {
    assert!(doomed("rw-sound").status.success());
}
