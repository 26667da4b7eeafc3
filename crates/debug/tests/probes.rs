//! The probes are in the program, as `readelf` reads it.

#![cfg(all(
    feature = "probes",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(ulocks_loom, ulocks_vm))
))]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::ops::Range;
use std::process::Command;
use ulocks_testkit as _;

/// The instruction that a tracer replaces.
const NOP: &[u8] = if cfg!(target_arch = "x86_64") { &[0x90] } else { &[0x1f, 0x20, 0x03, 0xd5] };

/// A note of our provider.
#[derive(Debug, Default)]
struct Note {
    name: String,
    location: usize,
    semaphore: usize,
    /// The size of each argument in bytes, as the note has it: negative, since it is signed.
    sizes: Vec<String>,
}

fn readelf(option: &str) -> String {
    let program = env::current_exe().unwrap();
    let output = Command::new("readelf").args([option, "--wide"]).arg(program).output();
    String::from_utf8(output.expect("readelf is there where a linker is").stdout).unwrap()
}

fn number(text: &str) -> usize {
    let digits = text.trim().trim_start_matches("0x");
    usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("`{text}` is no number"))
}

fn notes() -> Vec<Note> {
    let field = |line: &str, name: &str| line.split_once(name).map(|(_, rest)| rest.trim().to_owned());
    let mut all: Vec<Note> = Vec::new();
    let mut is_ours = false;
    for line in readelf("--notes").lines() {
        if let Some(provider) = field(line, "Provider:") {
            is_ours = provider == "ulocks";
            all.extend(is_ours.then(Note::default));
        }
        let Some(note) = all.last_mut().filter(|_| is_ours) else { continue };
        if let Some(name) = field(line, "Name:") {
            note.name = name;
        } else if let Some(places) = field(line, "Location:") {
            let (location, rest) = places.split_once(',').unwrap();
            note.location = number(location);
            note.semaphore = number(rest.split_once("Semaphore:").unwrap().1);
        } else if let Some(arguments) = field(line, "Arguments:") {
            // An operand of AArch64 may have a space in it: `-8@[sp, 16]`.
            let sizes = arguments.match_indices('@').map(|(at, _)| {
                let size = arguments[..at].rsplit(' ').next().unwrap_or_default();
                size.to_owned()
            });
            note.sizes = sizes.collect();
        }
    }
    all
}

/// The addresses of the code, and how far it is from them to the bytes in the file.
fn code() -> (Range<usize>, usize) {
    let sections = readelf("--sections");
    let line = sections.lines().find(|line| line.contains(" .text ")).expect("the program has code");
    let fields: Vec<&str> = line.split_once(".text").unwrap().1.split_whitespace().collect();
    let [address, offset, size] = [1, 2, 3].map(|field| number(fields[field]));
    (address..address + size, address - offset)
}

/// A tracer finds the place of a probe and its arguments in its note. If the linker has dropped a
/// function, its notes stay, with places outside of the code.
#[test]
fn readelf_lists_the_probes() {
    // The probes are where the checker is: in the code of a program that uses it.
    let lock = ulocks_debug::Mutex::new(0);
    *lock.lock() += 1;
    let (code, shift) = code();
    let program = fs::read(env::current_exe().unwrap()).unwrap();
    let mut probes: BTreeMap<String, usize> = BTreeMap::new();
    for note in notes() {
        assert_eq!(note.semaphore, 0, "no tracer has to switch a probe on: {note:?}");
        assert!(note.sizes.iter().all(|size| size == "-8"), "an argument is a word: {note:?}");
        if code.contains(&note.location) {
            let place = note.location - shift;
            assert_eq!(&program[place..place + NOP.len()], NOP, "{note:?}");
            let count = *probes.entry(note.name.clone()).or_insert(note.sizes.len());
            assert_eq!(count, note.sizes.len(), "a probe has the same arguments everywhere: {note:?}");
        }
    }
    let expected = [("acquired", 6), ("released", 1), ("reported", 3), ("wait_begin", 6), ("wait_end", 1)];
    assert_eq!(probes, expected.map(|(name, count)| (name.to_owned(), count)).into());
}
