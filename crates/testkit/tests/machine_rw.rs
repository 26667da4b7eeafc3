//! The machine clients for reader-writer locks pass on the plain lock. The mutants of the lock show
//! that each can fail.
#![cfg(world = "machine")]

use std::sync::{Arc, mpsc::channel};
use std::time::Duration;
use ulocks_core::raw::RawRwLock as _;
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw as model, upgrade};
use ulocks_testkit::plain::rw::{PlainRw, PlainRwShared};
use ulocks_testkit::rw::{shared, stress};
use ulocks_testkit::stress::Load;
use ulocks_testkit::thread::with;
use ulocks_testkit::{interrupt, task, watchdog};

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
    stress::oversubscribed::<PlainRw>(500).check();
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
fn a_handler_ends_a_wait() {
    interrupt::rwlock::<PlainRw>();
}

#[test]
fn processes_exclude_one_another() {
    shared::mixed::<PlainRwShared>(Load::default()).check();
}

/// Two readers leave while a writer sleeps.
#[test]
fn the_last_reader_wakes_the_writer() {
    let lock = Arc::new(PlainRw::new());
    lock.read();
    lock.read();
    let (say, said) = channel();
    let sleeper = with(&lock, move |lock| {
        say.send(task::id()).unwrap();
        lock.write();
    });
    task::until_asleep(&[said.recv().unwrap()]);
    let _watchdog = watchdog::watch_for(Duration::from_secs(20), "stranded", {
        let lock = Arc::clone(&lock);
        move || format!("locked {}", lock.is_locked())
    });
    // SAFETY: locked above, twice.
    unsafe {
        lock.unlock_read(());
        lock.unlock_read(());
    }
    sleeper.join().unwrap();
}
