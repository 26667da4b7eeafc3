//! A process that is alone resets the locks and keeps the data.

use super::Root;
use super::scratch::{Scratch, Word, alone, set_word, turn, word};
use std::fs;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Attached, Options, Region};
use ulocks_testkit::Child;

fn options() -> Options<Root> {
    Region::options()
}

/// A region whose only process was killed with the lock held and the data changed.
fn left_locked() -> Scratch {
    let scratch = Scratch::new();
    let victim = Child::runs(|| {
        let region = options().create(scratch.path(), 0o600).expect("a region");
        region.plain.store(9, Relaxed);
        let mut total = region.total.lock();
        *total = 7;
        Child::pauses();
        drop(total);
    })
    .sleeps(|| {
        fs::read(scratch.path()).is_ok_and(|bytes| bytes.len() == 12288 && bytes[8192..].contains(&7))
    });
    victim.killed();
    scratch
}

#[test]
fn the_next_process_finds_the_data_and_no_lock() {
    let _turn = turn();
    let scratch = left_locked();
    let region = options().open(scratch.path()).expect("the region");
    assert_eq!((region.attached(), region.epoch()), (Attached::Reset, 2));
    assert!(!region.total.is_locked());
    assert_eq!((*region.total.lock(), region.plain.load(Relaxed)), (7, 9));
}

#[test]
fn each_process_that_is_alone_begins_an_epoch() {
    let _turn = turn();
    let scratch = left_locked();
    for epoch in 2..6 {
        Child::runs(|| {
            let region = options().create_or_open(scratch.path(), 0o600).expect("the region");
            assert_eq!((region.attached(), region.epoch()), (Attached::Reset, epoch));
            let joined = options().open(scratch.path()).expect("the region");
            assert_eq!((joined.attached(), joined.epoch()), (Attached::Joined, epoch));
            assert_eq!(*region.total.lock(), 7 + epoch - 2);
            *joined.total.lock() += 1;
            std::mem::forget(region.total.lock());
        })
        .ends();
    }
}

#[test]
fn a_lock_that_is_held_is_not_reset_by_a_process_that_joins() {
    let (_turn, scratch) = alone();
    let region = options().create(scratch.path(), 0o600).expect("a region");
    let held = region.total.lock();
    Child::runs(|| {
        let own = options().open(scratch.path()).expect("the region");
        assert!(own.total.is_locked() && own.attached() == Attached::Joined);
    })
    .ends();
    drop(held);
    assert_eq!(region.epoch(), 1);
}

#[test]
fn a_reboot_resets() {
    let _turn = turn();
    let scratch = left_locked();
    let mut bytes = scratch.bytes();
    let boot = word(&bytes, Word::Boot);
    set_word(&mut bytes, Word::Boot, boot ^ 1);
    fs::write(scratch.path(), &bytes).expect("the file is writable");
    let region = options().open(scratch.path()).expect("the region");
    assert_eq!((region.attached(), region.epoch()), (Attached::Reset, 2));
    assert_eq!((region.total.is_locked(), region.plain.load(Relaxed)), (false, 9));
    assert_eq!(word(&scratch.bytes(), Word::Boot), boot);
}

/// A process died while it reset: the state says so, and the epoch may be half-written.
#[test]
fn an_unfinished_reset_is_done_again() {
    let _turn = turn();
    let scratch = left_locked();
    let mut bytes = scratch.bytes();
    set_word(&mut bytes, Word::State, 2);
    set_word(&mut bytes, Word::Epoch, 41);
    fs::write(scratch.path(), &bytes).expect("the file is writable");
    let region = options().open(scratch.path()).expect("the region");
    assert_eq!((region.attached(), region.epoch()), (Attached::Reset, 42));
    assert_eq!(*region.total.lock(), 7);
    drop(region);
    let region = options().open(scratch.path()).expect("the region");
    assert_eq!(region.epoch(), 43);
}

#[test]
fn the_slots_are_zeroed_by_a_reset() {
    let (_turn, scratch) = alone();
    let region = options().create(scratch.path(), 0o600).expect("a region");
    // SAFETY: the slots are mapped, and no thread uses them.
    unsafe { region.slots().as_ptr().write_bytes(0xa5, 64 * 64) };
    drop(options().open(scratch.path()).expect("the region"));
    drop(region);
    assert!(scratch.bytes()[4096..8192].iter().all(|&byte| byte == 0xa5));
    drop(options().open(scratch.path()).expect("the region"));
    assert!(scratch.bytes()[4096..8192].iter().all(|&byte| byte == 0));
}
