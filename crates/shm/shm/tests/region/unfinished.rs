//! Files that a creator has left which died before it was done, and files that look like it.

use super::Root;
use super::scratch::{Scratch, Word, alone, set_word, turn};
use std::fs::{self, OpenOptions};
use std::time::Duration;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Attached, MOST_PARTICIPANTS, Options, Region, RegionError};
use ulocks_testkit::Child;

/// The header, 64 slots, and the root.
const SIZE: usize = 12288;
/// What a creator writes before all else.
const BEGUN: u64 = u64::from_le_bytes(*b"ULOCKNEW");

fn options() -> Options<Root> {
    Region::options().wait(Duration::from_millis(3))
}

/// A file whose creator was killed while it prepared the root.
fn left_half_prepared() -> Scratch {
    let scratch = Scratch::new();
    Child::runs(|| {
        let made = options().create_or_open_with(scratch.path(), 0o600, |region| {
            region.plain.store(9, Relaxed);
            std::mem::forget(region.total.lock());
            Child::exits()
        });
        drop(made);
    })
    .ends();
    scratch
}

/// The mark of a creator, and zeroes.
fn begun(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    set_word(&mut bytes, Word::Magic, BEGUN);
    bytes
}

/// `open` says what it is, and leaves it; `create_or_open` makes a region of it.
fn is_made_anew(name: &str, bytes: &[u8]) {
    let scratch = Scratch::with(bytes);
    let error = options().open(scratch.path()).expect_err(name);
    assert!(matches!(error, RegionError::HalfInitialised), "{name}: {error}");
    assert_eq!(scratch.bytes(), bytes, "{name}: the file was changed");
    let region = options().create_or_open(scratch.path(), 0o600);
    let region = region.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((region.attached(), region.epoch()), (Attached::Created, 1), "{name}");
    assert_eq!((region.plain.load(Relaxed), region.total.is_locked()), (0, false), "{name}");
    assert_eq!(scratch.bytes().len(), SIZE, "{name}");
    drop(region);
    assert_eq!(options().open(scratch.path()).expect(name).attached(), Attached::Reset, "{name}");
}

/// The space is reserved in one step or in several, and the words of the header may be there in
/// part, in whatever order.
#[test]
fn what_a_dead_creator_leaves_is_made_anew() {
    let _turn = turn();
    let prepared = left_half_prepared().bytes();
    assert_eq!(prepared.len(), SIZE);
    let all = 4096 + MOST_PARTICIPANTS as usize * 64 + 4096;
    for len in [8, 127, 128, 4096, SIZE - 1, SIZE, SIZE + 4096, all] {
        is_made_anew(&format!("{len} bytes, begun"), &begun(len));
    }
    for words in 1..16 {
        for first in [8, words * 8] {
            // Up to that word, and that word alone.
            let mut bytes = begun(SIZE);
            bytes[first..(words + 1) * 8].copy_from_slice(&prepared[first..(words + 1) * 8]);
            is_made_anew(&format!("the words {} to {words}", first / 8), &bytes);
        }
    }
    is_made_anew("half prepared", &prepared);
}

/// A stranger has made a file, has mapped it, and has not written yet. Its next store finds the
/// file as long as it was.
#[test]
fn a_strangers_zeroes_are_left_alone() {
    let _turn = turn();
    for len in [128, 4096, SIZE, 262_144] {
        let scratch = Scratch::with(&vec![0; len]);
        for result in [options().open(scratch.path()), options().create_or_open(scratch.path(), 0o600)] {
            let error = result.expect_err("zeroes");
            assert!(matches!(error, RegionError::WrongMagic { found: 0 }), "{len} zeroes: {error}");
        }
        assert_eq!(scratch.bytes(), vec![0; len]);
    }
    for len in [1, 8, 127] {
        let scratch = Scratch::with(&vec![0; len]);
        let error = options().create_or_open(scratch.path(), 0o600).expect_err("too short for a header");
        assert!(matches!(error, RegionError::Truncated { .. }), "{len} zeroes: {error}");
        assert_eq!(scratch.bytes(), vec![0; len]);
    }
}

/// A file that no creator of this root leaves belongs to somebody else, also with the mark.
#[test]
fn what_no_creator_of_this_root_leaves_is_left_alone() {
    let _turn = turn();
    let prepared = left_half_prepared().bytes();
    let all = 4096 + MOST_PARTICIPANTS as usize * 64 + 4096;
    let with = |at: usize, value: u64| {
        let mut bytes = begun(SIZE);
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        bytes
    };
    for (name, bytes) in [
        ("a larger file", begun(all + 1)),
        ("data at the end", with(SIZE - 8, 1)),
        ("data behind the header", with(128, 1)),
        ("another identity", with(16, 1)),
        ("another version", with(8, 1)),
        ("another state", with(104, 1)),
        ("a reserved word", with(112, 1)),
    ] {
        let scratch = Scratch::with(&bytes);
        for result in [options().open(scratch.path()), options().create_or_open(scratch.path(), 0o600)] {
            let error = result.expect_err(name);
            assert!(matches!(error, RegionError::WrongMagic { found: BEGUN }), "{name}: {error}");
            assert!(!error.to_string().contains("remove"), "{name}: {error}");
        }
        assert_eq!(scratch.bytes(), bytes, "{name}: the file was changed");
    }
    // Of another root, which its creator prepared.
    let scratch = Scratch::with(&prepared);
    let error = Region::<u32>::options().create_or_open(scratch.path(), 0o600).expect_err("another root");
    assert!(matches!(error, RegionError::WrongLayout { .. }), "{error}");
    assert_eq!(scratch.bytes(), prepared);
    // A terabyte, with holes: nothing reads it.
    let scratch = Scratch::with(b"");
    let file = OpenOptions::new().write(true).open(scratch.path()).expect("it is ours");
    if file.set_len(1 << 40).is_ok() {
        let error = options().create_or_open(scratch.path(), 0o600).expect_err("a terabyte");
        assert!(matches!(error, RegionError::WrongMagic { found: 0 }), "{error}");
        assert_eq!(fs::metadata(scratch.path()).expect("it is there").len(), 1 << 40);
    }
}

/// The creator lives: its lock says so, whatever is in the file.
#[test]
fn what_a_living_creator_has_begun_is_left_to_it() {
    let (_turn, scratch) = alone();
    let creator = Child::runs(|| {
        let made = options().create_or_open_with(scratch.path(), 0o600, |region| {
            region.plain.store(9, Relaxed);
            Child::pauses();
            Ok(())
        });
        drop(made);
    })
    .sleeps(|| fs::read(scratch.path()).is_ok_and(|bytes| bytes.len() == SIZE && bytes[8192..].contains(&9)));
    let bytes = scratch.bytes();
    for result in [options().open(scratch.path()), options().create_or_open(scratch.path(), 0o600)] {
        assert!(matches!(result, Err(RegionError::Busy)), "{result:?}");
    }
    assert_eq!(scratch.bytes(), bytes);
    creator.killed();
    is_made_anew("its creator was killed", &scratch.bytes());
}
