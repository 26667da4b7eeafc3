//! What `repair` does, and when it refuses.

use super::joined::joined;
use super::scratch::{Scratch, Word, set_word, turn, word};
use super::{Names, Plain, list, open, repair};
use ulocks_shm::{Attached, LockError, Mutex, Region};
use ulocks_testkit::Child;

/// A region whose only process ended with locks held, and in the middle of a creation.
fn left() -> Scratch {
    let scratch = Scratch::new();
    Child::runs(|| {
        let region = open(&scratch);
        let me = joined(&region);
        let plain = region.find_or_create::<Plain>(&me, "plain").expect("room");
        let robust = region.find_or_create::<Mutex<u64>>(&me, "robust").expect("room");
        *plain.lock() = 6;
        std::mem::forget((plain.lock(), robust.lock(&me)));
        let _ = region.find_or_create_with(&me, "half", |_: &u64, _| Child::exits());
    })
    .ends();
    scratch
}

#[test]
fn a_region_that_nobody_uses() {
    let _turn = turn();
    let scratch = left();
    let ran = list(&scratch);
    ran.has(&["slot 0", "dead"]);
    ran.has(&["its own lock: slot 0 (dead) holds it"]);
    let ran = repair(&scratch);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    ran.has(&["epoch 2 has begun"]);
    ran.has(&["freed 1 slots, reset 1 directories"]);
    let ran = list(&scratch);
    assert_eq!(ran.code, 0);
    ran.has(&["epoch 2"]);
    ran.has(&["0 of 4 slots are taken"]);
    ran.has(&["\"plain\"", "reset when a program next asks for it"]);
    ran.has_not("its own lock");

    let region = open(&scratch);
    assert_eq!((region.attached(), region.epoch()), (Attached::Reset, 3));
    let me = joined(&region);
    let plain = region.find::<Plain>(&me, "plain").expect("it is kept");
    assert_eq!(*plain.lock(), 6);
    let robust = region.find::<Mutex<u64>>(&me, "robust").expect("it is kept");
    assert!(matches!(robust.lock(&me), Err(LockError::OwnerDied(_))));
}

#[test]
fn a_region_that_is_used() {
    let _turn = turn();
    let scratch = left();
    let region = open(&scratch);
    let before = scratch.bytes();
    let ran = repair(&scratch);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
    assert!(ran.err.contains("processes are attached to it"), "{}", ran.err);
    assert_eq!(scratch.bytes(), before);
    drop(region);
    assert_eq!(repair(&scratch).code, 0);
}

/// Damage that a program refuses, in words that a reset writes.
#[test]
fn a_damaged_epoch_or_state() {
    let _turn = turn();
    let sound = left().bytes();
    let epoch = word(&sound, Word::Epoch);
    for (at, value, what, next) in [
        (Word::Epoch, epoch ^ 4, "the epoch is wrong", 6),
        (Word::NotEpoch, !(epoch ^ 8), "the epoch is wrong", 10),
        (Word::State, 7, "the state is wrong", 2),
    ] {
        let mut bytes = sound.clone();
        set_word(&mut bytes, at, value);
        let scratch = Scratch::with(&bytes);
        Region::<Names>::options().open(scratch.path()).expect_err(what);
        let ran = list(&scratch);
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.has(&["DAMAGED", what]);
        let ran = repair(&scratch);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.has(&["mended", what]);
        assert_eq!(list(&scratch).code, 0);
        assert_eq!(open(&scratch).epoch(), next + 1, "{what}");
    }
}

/// Damage that no program can mend.
#[test]
fn a_damaged_entry() {
    let _turn = turn();
    let mut bytes = left().bytes();
    bytes[8192 + 64 + 192 + 64] ^= 1;
    let scratch = Scratch::with(&bytes);
    let ran = list(&scratch);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.has(&["DAMAGED: entry 1 is damaged: the checksum is wrong"]);
    ran.has(&["\"plain\""]);
    let ran = repair(&scratch);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.has(&["STILL DAMAGED: entry 1", "create it again"]);
}

/// The words of locks that name nothing.
#[test]
fn damaged_locks() {
    let _turn = turn();
    let sound = left().bytes();
    // Behind the entries: the mutex "plain", 16 bytes, then the robust one.
    let robust = 8192 + 64 + 8 * 192 + 16;
    for (offset, value, what) in [
        (robust, 1_u32, "its word is 0x1"),
        (robust, 1 << 29 | 4095, "there is no such slot"),
        (robust + 8, 77, "its health is 0x4d"),
    ] {
        let mut bytes = sound.clone();
        bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        let ran = list(&Scratch::with(&bytes));
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.has(&["\"robust\"", "DAMAGED", what]);
    }
}

/// Begun, and a region whose creator was killed while it prepared the root. `list` says what they
/// are, and `repair` makes them empty. A stranger's file stays, and nobody is told to remove it.
#[test]
fn a_file_whose_creator_has_died() {
    let _turn = turn();
    let prepared = Scratch::new();
    Child::runs(|| {
        let made = Region::<Names>::options().create_or_open_with(prepared.path(), 0o600, |_| Child::exits());
        drop(made);
    })
    .ends();
    for scratch in [Scratch::with(&[&b"ULOCKNEW"[..], &[0; 8184]].concat()), prepared] {
        let ran = list(&scratch);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("the creator of its region died"), "{ran:?}");
        assert!(!ran.err.contains("remove"), "{ran:?}");
        let ran = repair(&scratch);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.has(&["its creator died", "it is empty now"]);
        assert_eq!(scratch.bytes(), b"");
        assert_eq!(open(&scratch).attached(), Attached::Created);
    }
    let large = Scratch::with(b"");
    let file = std::fs::OpenOptions::new().write(true).open(large.path()).expect("it is ours");
    if file.set_len(1 << 40).is_ok() {
        for ran in [list(&large), repair(&large)] {
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(ran.err.contains("not as a region does") && !ran.err.contains("remove"), "{ran:?}");
        }
        assert_eq!(file.metadata().expect("it is there").len(), 1 << 40);
    }
}
