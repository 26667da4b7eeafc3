//! Wrong arguments, and files that are no region.

use super::joined::joined;
use super::scratch::{Scratch, Word, alone, seal, set_word, turn};
use super::{list, open, repair, run};
use std::fs;

#[test]
fn wrong_arguments() {
    // A program that is being started has the files of this process for a moment.
    let _turn = turn();
    for (arguments, what) in [
        (&[] as &[&str], "say list or repair"),
        (&["list"], "which file?"),
        (&["repair"], "which file?"),
        (&["show", "x"], "no command \"show\""),
        (&["list", "--jsno", "x"], "no option \"--jsno\""),
        (&["list", "x", "y"], "one file at a time"),
        (&["--", "list", "--help", "x"], "one file at a time"),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(what), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains("--help"), "{arguments:?}: {ran:?}");
    }
    let ran = run(&["--help"]);
    assert_eq!(ran.code, 0);
    ran.has(&["ulocks-region list FILE"]);
    ran.has(&["3  not repaired"]);
    let ran = run(&["--version"]);
    assert_eq!((ran.code, ran.out), (0, format!("ulocks-region {}\n", env!("CARGO_PKG_VERSION"))));
}

/// Both commands give the error of the file, and leave it as it is.
fn demand(name: &str, bytes: &[u8], what: &str) {
    let scratch = Scratch::with(bytes);
    for ran in [list(&scratch), repair(&scratch)] {
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{name}: {ran:?}");
        assert!(ran.err.contains(what), "{name}: {ran:?}");
        assert!(ran.err.contains(scratch.path().to_str().expect("a name")), "{name}: {ran:?}");
    }
    assert_eq!(scratch.bytes(), bytes, "{name}: the file was changed");
}

#[test]
fn files_that_are_no_region() {
    let (_turn, scratch) = alone();
    drop(open(&scratch));
    let sound = scratch.bytes();
    demand("nothing", b"", "the file is empty");
    demand("zeroes", &[0; 8192], "not as a region does");
    demand("zeroes, and something", &[&[0; 8192][..], b"x"].concat(), "not as a region does");
    demand("text", &b"Locks between processes.\n".repeat(40), "not as a region does");
    demand("short", b"1234", "at least 128 are needed");
    demand("cut off", &sound[..sound.len() - 1], "it was cut off");
    demand("longer", &[sound.as_slice(), b"x"].concat(), "something was appended");
    for (name, at, value, what) in [
        ("version", Word::Version, 4, "has format 4"),
        ("no slots", Word::Slots, 0, "the number of slots"),
        ("many slots", Word::Slots, u64::MAX, "the number of slots"),
        ("a root of all memory", Word::RootSize, u64::MAX, "the number of slots"),
        ("a large root", Word::RootSize, 1 << 40, "the size of the region"),
        ("another root", Word::RootOffset, 0, "the offset of the root"),
        ("slots elsewhere", Word::SlotsOffset, 64, "the offset of the slots"),
        ("large slots", Word::SlotSize, 128, "the size of a slot"),
        ("a reserved word", Word::Reserved0, 1, "the reserved words"),
        ("a checksum", Word::Checksum, 1, "the checksum"),
    ] {
        let mut bytes = sound.clone();
        set_word(&mut bytes, at, value);
        if !matches!(at, Word::Checksum) {
            seal(&mut bytes);
        }
        demand(name, &bytes, what);
    }
}

#[test]
fn no_files() {
    let (_turn, scratch) = alone();
    for ran in [list(&scratch), repair(&scratch)] {
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("there is no such file"), "{ran:?}");
    }
    let directory = std::env::temp_dir();
    for command in ["list", "repair"] {
        let ran = run(&[command, directory.to_str().expect("a name")]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("not a regular file"), "{ran:?}");
    }
    // A pipe without a writer must not stop it.
    let pipe = Scratch::pipe();
    assert_eq!(list(&pipe).code, 1);
    assert_eq!(repair(&pipe).code, 1);
}

/// Regions of words that were chosen at random: no panic, and an exit code that is listed.
#[test]
fn random_regions() {
    let (_turn, scratch) = alone();
    {
        let region = open(&scratch);
        let me = joined(&region);
        region.find_or_create::<ulocks_shm::SemArray<3, 4, 2>>(&me, "array").expect("room");
        region.find_or_create::<ulocks_shm::Mutex<u64>>(&me, "mutex").expect("room");
    }
    let sound = scratch.bytes();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut listed = 0;
    for round in 0..2000 {
        let mut bytes = sound.clone();
        for _ in 0..=next(4) {
            let part = [0, 4096, 8192, 8192 + 64, 8192 + 64 + 8 * 192][next(5) as usize];
            let at = part + next(40) as usize * 8;
            let old = u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("a word"));
            let values = [0, 1, 8, 64, 4096, u64::MAX, 1 << 63, old ^ 1 << next(64), !old, 1 << next(64)];
            bytes[at..at + 8].copy_from_slice(&values[next(10) as usize].to_ne_bytes());
        }
        if next(2) == 0 {
            seal(&mut bytes);
        }
        fs::write(scratch.path(), &bytes).expect("the file is writable");
        // The program's own function: without a new process each time.
        if ulocks_shm::inspect::look(scratch.path()).is_ok() {
            listed += 1;
        }
        if round % 100 == 0 {
            assert!([0, 1].contains(&list(&scratch).code), "round {round}");
        }
        let _ = ulocks_shm::inspect::repair(scratch.path());
    }
    assert!(listed > 100, "only {listed} were listed");
}
