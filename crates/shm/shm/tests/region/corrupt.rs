//! Files that are no region of the type, or a damaged one: each gives the error that says so, and
//! is left as it was.

use super::Root;
use super::scratch::{Scratch, Word, seal, set_word, turn, word};
use Expected::{Corrupt, HalfInitialised, Truncated, WrongLayout, WrongMagic, WrongSize, WrongVersion};
use std::time::Duration;
use ulocks_core::sync::AtomicU64;
use ulocks_shm::{Region, RegionError, SharedSafe};

/// The first page, and the 64 slots of 64 bytes.
const ROOT_OFFSET: u64 = 4096 + 64 * 64;
const SIZE: u64 = ROOT_OFFSET + 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    HalfInitialised,
    Truncated { expected: u64, found: u64 },
    WrongSize { expected: u64, found: u64 },
    WrongMagic,
    WrongVersion(u64),
    WrongLayout,
    Corrupt(&'static str),
}

fn told(error: &RegionError) -> Option<Expected> {
    Some(match *error {
        RegionError::HalfInitialised => HalfInitialised,
        RegionError::Truncated { expected, found } => Truncated { expected, found },
        RegionError::WrongSize { expected, found } => WrongSize { expected, found },
        RegionError::WrongMagic { .. } => WrongMagic,
        RegionError::WrongVersion { found, .. } => WrongVersion(found),
        RegionError::WrongLayout { .. } => WrongLayout,
        RegionError::Corrupt { what } => Corrupt(what),
        _ => return None,
    })
}

/// A region that has been used and left.
fn sound() -> Vec<u8> {
    let scratch = Scratch::new();
    let region = Region::<Root>::options().create(scratch.path(), 0o600).expect("a region");
    *region.total.lock() = 7;
    drop(region);
    scratch.bytes()
}

fn options() -> ulocks_shm::Options<Root> {
    Region::options().wait(Duration::from_millis(3))
}

/// Demands `expected` of opening `bytes`, also for a process that would create the region, and that
/// the file stays as it is.
fn demand(name: &str, bytes: &[u8], expected: Expected) {
    let scratch = Scratch::with(bytes);
    let error = options().open(scratch.path()).expect_err(name);
    assert_eq!(told(&error), Some(expected), "{name}: {error}");
    assert_eq!(scratch.bytes(), bytes, "{name}: the file was changed");
    if !bytes.is_empty() {
        let error = options().create_or_open(scratch.path(), 0o600).expect_err(name);
        assert_eq!(told(&error), Some(expected), "{name}: {error}");
        assert_eq!(scratch.bytes(), bytes, "{name}: the file was changed");
    }
    assert!(error.to_string().len() > 40, "{name}: the text says too little: {error}");
}

#[test]
fn a_truncated_or_extended_file() {
    let _turn = turn();
    let sound = sound();
    assert_eq!(sound.len() as u64, SIZE);
    let header = |found| Truncated { expected: 128, found };
    let region = |found| Truncated { expected: SIZE, found };
    for (name, size, expected) in [
        ("nothing is left", 0, HalfInitialised),
        ("one byte", 1, header(1)),
        ("the magic", 8, header(8)),
        ("the header but for one byte", 127, header(127)),
        ("the header", 128, region(128)),
        ("the header and a byte", 129, region(129)),
        ("the page of the header", 4096, region(4096)),
        ("half of the slots", 4096 + 32 * 64, region(4096 + 32 * 64)),
        ("the slots but for one byte", ROOT_OFFSET - 1, region(ROOT_OFFSET - 1)),
        ("no root", ROOT_OFFSET, region(ROOT_OFFSET)),
        ("a byte of the root", ROOT_OFFSET + 1, region(ROOT_OFFSET + 1)),
        ("all but a byte", SIZE - 1, region(SIZE - 1)),
        ("a byte more", SIZE + 1, WrongSize { expected: SIZE, found: SIZE + 1 }),
        ("a page more", SIZE + 4096, WrongSize { expected: SIZE, found: SIZE + 4096 }),
    ] {
        let mut bytes = sound.clone();
        bytes.resize(usize::try_from(size).expect("a small size"), 0);
        demand(name, &bytes, expected);
    }
}

#[test]
fn each_flipped_bit_of_the_header() {
    let _turn = turn();
    let sound = sound();
    for bit in 0..128 * 8 {
        let at = bit / 64;
        let expected = match at {
            0 => WrongMagic,
            1 => WrongVersion(3 ^ 1 << (bit % 64)),
            2..=9 => Corrupt("the checksum of the header"),
            // Another boot is no damage.
            10 => continue,
            11 | 12 => Corrupt("the epoch"),
            // READY and RESETTING differ in two bits.
            13 => Corrupt("the state"),
            _ => Corrupt("the reserved words"),
        };
        let mut bytes = sound.clone();
        // The bit of the word, on a machine of either order of bytes.
        let word =
            u64::from_ne_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("a word")) ^ 1 << (bit % 64);
        bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_ne_bytes());
        demand(&format!("bit {} of word {at}", bit % 64), &bytes, expected);
    }
}

/// Headers whose checksum is right: of other programs, or made by an attacker.
#[test]
fn hostile_and_foreign_headers() {
    let _turn = turn();
    let sound = sound();
    let slots = Corrupt("the number of slots");
    let size = Corrupt("the size of the region");
    let root = Corrupt("the offset of the root");
    let root_size = size_of::<Root>() as u64;
    for (name, at, value, expected) in [
        ("no magic", Word::Magic, 0, WrongMagic),
        ("an archive", Word::Magic, u64::from_ne_bytes(*b"\x1f\x8b\x08\0\0\0\0\0"), WrongMagic),
        ("another order of bytes", Word::Magic, word(&sound, Word::Magic).swap_bytes(), WrongMagic),
        ("version 0", Word::Version, 0, WrongVersion(0)),
        ("version 2", Word::Version, 2, WrongVersion(2)),
        ("the last version", Word::Version, u64::MAX, WrongVersion(u64::MAX)),
        ("another layout", Word::Identity, 1, WrongLayout),
        ("no slots", Word::Slots, 0, slots),
        ("one slot too many", Word::Slots, 4097, slots),
        ("2^32 slots and 64", Word::Slots, (1 << 32) + 64, slots),
        ("most slots", Word::Slots, u64::MAX, slots),
        ("slots whose size overflows", Word::Slots, 1 << 58, slots),
        ("other slots than the root's place tells", Word::Slots, 128, root),
        ("slots in the header", Word::SlotsOffset, 0, Corrupt("the offset of the slots")),
        ("slots that are not aligned", Word::SlotsOffset, 4097, Corrupt("the offset of the slots")),
        ("slots beyond the end", Word::SlotsOffset, SIZE, Corrupt("the offset of the slots")),
        ("slots without a size", Word::SlotSize, 0, Corrupt("the size of a slot")),
        ("large slots", Word::SlotSize, 1 << 63, Corrupt("the size of a slot")),
        ("the root in the header", Word::RootOffset, 0, root),
        ("the root in the slots", Word::RootOffset, 4096, root),
        ("a root that is not aligned", Word::RootOffset, ROOT_OFFSET + 1, root),
        ("the root at the end", Word::RootOffset, SIZE, root),
        ("the root beyond all memory", Word::RootOffset, u64::MAX - 7, root),
        ("a root without a size", Word::RootSize, 0, Corrupt("the size of the root")),
        ("a larger root", Word::RootSize, root_size + 1, Corrupt("the size of the root")),
        ("a root of all memory", Word::RootSize, u64::MAX, Corrupt("the size of the root")),
        ("a region without a size", Word::Size, 0, size),
        ("a region of a header", Word::Size, 128, size),
        ("a region that ends in the root", Word::Size, SIZE - 1, size),
        ("a larger region", Word::Size, SIZE + 4096, size),
        ("a region of all memory", Word::Size, u64::MAX, size),
        ("no state", Word::State, 0, Corrupt("the state")),
        ("an unknown state", Word::State, 3, Corrupt("the state")),
        ("a large state", Word::State, u64::MAX, Corrupt("the state")),
        ("another epoch", Word::Epoch, 77, Corrupt("the epoch")),
        ("another complement", Word::NotEpoch, 77, Corrupt("the epoch")),
        ("a reserved word", Word::Reserved0, 1, Corrupt("the reserved words")),
        ("another reserved word", Word::Reserved1, u64::MAX, Corrupt("the reserved words")),
    ] {
        let mut bytes = sound.clone();
        set_word(&mut bytes, at, value);
        seal(&mut bytes);
        demand(name, &bytes, expected);
    }
}

#[test]
fn files_of_other_programs() {
    let _turn = turn();
    demand("text", &b"Locks between processes, in a file.\n".repeat(400), WrongMagic);
    demand("a short text", b"1234\n", Truncated { expected: 128, found: 5 });
    demand("ones", &[0xff; 12288], WrongMagic);
}

/// A region of another type: of the same size, too.
#[test]
fn another_root() {
    let _turn = turn();
    fn refused<R: SharedSafe>(name: &str, bytes: &[u8]) {
        let scratch = Scratch::with(bytes);
        let error = Region::<R>::options().open(scratch.path()).expect_err(name);
        assert!(
            matches!(error, RegionError::WrongLayout { expected, found } if expected != found),
            "{name}: {error}"
        );
        assert_eq!(scratch.bytes(), bytes, "{name}");
    }
    let sound = sound();
    refused::<u64>("a number", &sound);
    refused::<[AtomicU64; 3]>("three words", &sound);
    refused::<[Root; 1]>("an array of one", &sound);
    refused::<()>("nothing", &sound);
}
