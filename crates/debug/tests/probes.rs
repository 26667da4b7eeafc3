//! The probes are in the program, as `readelf` reads it.

#![cfg(all(
    feature = "probes",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(ulocks_loom, ulocks_vm))
))]

use std::{collections::BTreeMap, env, fs, process::Command};
use ulocks_testkit as _;

/// The instruction that a tracer replaces.
const NOP: &[u8] = if cfg!(target_arch = "x86_64") { &[0x90] } else { &[0x1f, 0x20, 0x03, 0xd5] };

fn readelf(option: &str) -> String {
    let output = Command::new("readelf").args([option, "--wide"]).arg(env::current_exe().unwrap()).output();
    String::from_utf8(output.expect("readelf is there where a linker is").stdout).unwrap()
}

fn number(text: &str) -> usize {
    usize::from_str_radix(text.trim().trim_start_matches("0x"), 16).expect(text)
}

/// A tracer finds the place of a probe and its arguments in its note. If the linker has dropped a
/// function, its notes stay, with places outside of the code.
#[test]
fn readelf_lists_the_probes() {
    // The probes are where the checker is: in the code of a program that uses it.
    *ulocks_debug::Mutex::new(0).lock() += 1;
    let program = fs::read(env::current_exe().unwrap()).unwrap();
    let (sections, notes) = (readelf("--sections"), readelf("--notes"));
    let code = sections.lines().find_map(|line| line.split_once(" .text ")).expect("it has code").1;
    let fields: Vec<&str> = code.split_whitespace().collect();
    let [address, offset, size] = [1, 2, 3].map(|field| number(fields[field]));
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for note in notes.split("Provider:").filter(|note| note.trim_start().starts_with("ulocks\n")) {
        let line = |name: &str| {
            let rest = note.split_once(name).unwrap_or_else(|| panic!("no {name} {note}")).1;
            rest.lines().next().unwrap_or_default()
        };
        assert_eq!(number(line("Semaphore:")), 0, "no tracer has to switch a probe on: {note}");
        let count = line("Arguments:").matches('@').count();
        assert_eq!(line("Arguments:").matches(" -8@").count(), count, "an argument is a word: {note}");
        let location = number(line("Location:").split(',').next().unwrap_or_default());
        if let Some(place) = location.checked_sub(address).filter(|place| *place < size) {
            assert!(program[offset + place..].starts_with(NOP), "{note}");
            let first = found.entry(line("Name:").trim()).or_insert(count);
            assert_eq!(*first, count, "a probe has the same arguments everywhere: {note}");
        }
    }
    let wanted = [("acquired", 6), ("released", 1), ("reported", 3), ("wait_begin", 6), ("wait_end", 1)];
    assert_eq!(found, wanted.into());
}
