//! Directories whose memory was overwritten: each gives the error that says so.

use super::joined::joined;
use super::scratch::{Scratch, turn};
use super::{Plain, open};
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{DirectoryError, Refused};

/// The first page, and the 64 slots of 64 bytes.
const ROOT: usize = 4096 + 64 * 64;
/// Behind the words of the directory itself.
const ENTRIES: usize = ROOT + 64;
const ENTRY: usize = 24 * 8;

/// The words of an entry.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Word {
    State,
    Epoch,
    Identity,
    Offset,
    Size,
    Shape,
    Checksum,
    Reserved,
    Name,
    NameEnd = 15,
    Kind,
}

fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn set(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// Where the word of the entry is in the file.
fn at(entry: usize, word: Word) -> usize {
    ENTRIES + entry * ENTRY + word as usize * 8
}

/// Makes the checksum of `entry` right, as an attacker would.
fn seal(bytes: &mut [u8], entry: usize) {
    let begin = ENTRIES + entry * ENTRY;
    let parts = [2..6, 8..24].map(|words| bytes[begin + words.start * 8..begin + words.end * 8].to_vec());
    let sum = parts.concat().chunks_exact(8).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.to_le_bytes()
            .iter()
            .fold(hash, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    });
    set(bytes, at(entry, Word::Checksum), sum);
}

/// A region with the names "one", "two" and "three", which was left.
fn sound() -> Vec<u8> {
    let scratch = Scratch::new();
    {
        let region = open(&scratch);
        let me = joined(&region);
        for name in ["one", "two", "three"] {
            *region.find_or_create::<Plain>(&me, name).expect("room").lock() = 5;
        }
    }
    scratch.bytes()
}

/// Demands `expected` of each use of a directory with these bytes, and that none of them changes
/// what the directory says.
fn demand(name: &str, bytes: &[u8], expected: &DirectoryError) {
    let scratch = Scratch::with(bytes);
    let region = open(&scratch);
    let me = joined(&region);
    let words = || scratch.bytes()[ENTRIES..ENTRIES + 8 * ENTRY].to_vec();
    let before = words();
    for asked in ["one", "two", "three", "four"] {
        assert_eq!(
            region.find::<Plain>(&me, asked).map(drop).as_ref(),
            Err(expected),
            "{name}: find {asked}"
        );
        let created = region.find_or_create::<Plain>(&me, asked).map(drop);
        assert_eq!(created.as_ref(), Err(expected), "{name}: create {asked}");
    }
    assert_eq!(me.held(), 0, "{name}");
    assert_eq!(words(), before, "{name}");
    assert!(expected.to_string().len() > 60, "{name}: the text says too little: {expected}");
}

#[test]
fn hostile_entries() {
    let _turn = turn();
    let sound = sound();
    let (offset, size) = (16, 16);
    let text = |text: &[u8; 8]| u64::from_ne_bytes(*text);
    for (name, word, value, what) in [
        ("an unknown state", Word::State, 1, "the state"),
        ("a large state", Word::State, u64::MAX, "the state"),
        ("a free entry between others", Word::State, 0, "the state"),
        ("an epoch of two", Word::Epoch, 1 << 32, "the epoch"),
        ("an epoch that has not come", Word::Epoch, 77 | 77 << 32, "the epoch"),
        ("the last epoch", Word::Epoch, u64::MAX, "the epoch"),
        ("a type that has a damaged name", Word::Kind, text(b"\xc3\x28\0\0\0\0\0\0"), "the name of the type"),
        ("a reserved word", Word::Reserved, 1, "the reserved word"),
        ("a value at the place of another", Word::Offset, 0, "the offset"),
        ("a value that begins in another", Word::Offset, offset - 8, "the offset"),
        ("a value that is not aligned", Word::Offset, offset + 1, "the offset"),
        ("a value beyond the arena", Word::Offset, 1024, "the size"),
        ("a value beyond all memory", Word::Offset, u64::MAX - 7, "the size"),
        ("a value that ends beyond the arena", Word::Size, 1024 - offset + 1, "the size"),
        ("a value of all memory", Word::Size, u64::MAX, "the size"),
        ("a value whose end overflows", Word::Size, u64::MAX - offset + 1, "the size"),
        ("no alignment", Word::Shape, 0, "the alignment"),
        ("an alignment that is no power of two", Word::Shape, 24, "the alignment"),
        ("a large alignment", Word::Shape, 128, "the alignment"),
        ("no name", Word::Name, 0, "the name"),
        ("a name that is not UTF-8", Word::Name, text(b"\xff\xff\0\0\0\0\0\0"), "the name"),
        ("a name with a hole", Word::NameEnd, 1, "the name"),
    ] {
        let mut bytes = sound.clone();
        set(&mut bytes, at(1, word), value);
        seal(&mut bytes, 1);
        assert_eq!((get(&sound, at(1, Word::Offset)), get(&sound, at(1, Word::Size))), (offset, size));
        let entry = Some(1);
        demand(name, &bytes, &DirectoryError::Corrupt { entry, what });
    }
}

#[test]
fn a_value_that_reaches_into_the_next_one() {
    let _turn = turn();
    let mut bytes = sound();
    set(&mut bytes, at(1, Word::Size), 24);
    seal(&mut bytes, 1);
    demand("a larger value", &bytes, &DirectoryError::Corrupt { entry: Some(2), what: "the offset" });
}

#[test]
fn two_entries_of_one_name() {
    let _turn = turn();
    let mut bytes = sound();
    let name = get(&bytes, at(0, Word::Name));
    set(&mut bytes, at(2, Word::Name), name);
    seal(&mut bytes, 2);
    let scratch = Scratch::with(&bytes);
    let region = open(&scratch);
    let me = joined(&region);
    let error = region.find::<Plain>(&me, "one").map(drop);
    assert_eq!(error, Err(DirectoryError::Corrupt { entry: Some(2), what: "the name" }));
}

/// The same type, but at a place or of a size that is not its own.
#[test]
fn an_identity_with_another_shape() {
    let _turn = turn();
    for (name, changes) in [
        ("a smaller value", vec![(Word::Size, 8)]),
        ("a larger value", vec![(Word::Size, 32)]),
        ("another type", vec![(Word::Identity, 1)]),
        ("not aligned for the type", vec![(Word::Offset, 33), (Word::Shape, 1)]),
    ] {
        let mut bytes = sound();
        for (word, value) in changes {
            set(&mut bytes, at(2, word), value);
        }
        seal(&mut bytes, 2);
        let scratch = Scratch::with(&bytes);
        let region = open(&scratch);
        let me = joined(&region);
        let error = region.find::<Plain>(&me, "three").map(drop);
        assert!(matches!(error, Err(DirectoryError::WrongType { .. })), "{name}: {error:?}");
        region.find::<Plain>(&me, "two").expect("it is sound");
    }
}

/// No flipped bit of the words of an entry hides its lock, or gives it to two names.
#[test]
fn each_flipped_bit_of_an_entry() {
    let _turn = turn();
    let sound = sound();
    for bit in 0..ENTRY * 8 {
        let mut bytes = sound.clone();
        let place = ENTRIES + ENTRY + bit / 64 * 8;
        let word = get(&bytes, place) ^ 1 << (bit % 64);
        set(&mut bytes, place, word);
        let what = match bit / 64 {
            0 => "the state",
            1 => "the epoch",
            7 => "the reserved word",
            _ => "the checksum",
        };
        let scratch = Scratch::with(&bytes);
        let region = open(&scratch);
        let me = joined(&region);
        let expected = DirectoryError::Corrupt { entry: Some(1), what };
        let found = region.find_or_create::<Plain>(&me, "two").map(drop);
        assert_eq!(found, Err(expected.clone()), "bit {bit}");
        let listed: Vec<_> = region.entries().map(|entry| entry.map(|entry| entry.name)).collect();
        assert_eq!(listed, [Ok("one".to_string()), Err(expected)], "bit {bit}");
    }
}

/// The words of the directory itself. A reset puts its lock and its epoch right.
#[test]
fn the_words_of_the_directory() {
    let _turn = turn();
    let scratch = Scratch::with(&sound());
    let region = open(&scratch);
    let me = joined(&region);
    let lock = region.find::<Plain>(&me, "one").expect("it is sound");
    let words = |at: usize| {
        // SAFETY: the root is mapped, and its first words are atomics.
        unsafe { region.base().add(ROOT + at).cast::<AtomicU64>().as_ref() }
    };
    let epoch = words(8).swap(1, Relaxed);
    let error = region.find::<Plain>(&me, "one").map(drop);
    assert_eq!(error, Err(DirectoryError::Corrupt { entry: None, what: "the epoch" }));
    assert_eq!(region.entries().next().map(|entry| entry.map(drop)), Some(error));
    words(8).store(epoch, Relaxed);
    // A slot that does not exist.
    words(0).store(1 << 29 | 4095, Relaxed);
    let error = region.find::<Plain>(&me, "one").map(drop);
    assert!(matches!(error, Err(DirectoryError::Lock(Refused::Corrupt(_)))), "{error:?}");
    words(8).store(1, Relaxed);
    drop(lock.lock());
    drop(me);
    drop(region);
    let region = open(&scratch);
    let me = joined(&region);
    assert_eq!(*region.find::<Plain>(&me, "one").expect("it is sound").lock(), 5);
}
