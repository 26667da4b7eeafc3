//! The probes are in the program, as `readelf` reads it.

#![cfg(all(
    feature = "probes",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(ulocks_loom, ulocks_vm))
))]

use std::collections::BTreeMap;
use std::env;
use std::process::Command;

#[test]
fn readelf_lists_the_probes() {
    // The probes are where the checker is: in the code of a program that uses it.
    let lock = ulocks_debug::Mutex::new(0);
    *lock.lock() += 1;
    let program = env::current_exe().unwrap();
    let output = Command::new("readelf").args(["--notes", "--wide"]).arg(program).output();
    let output = output.expect("readelf is there where a linker is");
    let text = String::from_utf8(output.stdout).unwrap();
    let field = |line: &str, name: &str| line.split_once(name).map(|(_, rest)| rest.trim().to_owned());
    // The number of arguments of each probe of our provider.
    let mut probes: BTreeMap<String, usize> = BTreeMap::new();
    let (mut is_ours, mut name) = (false, String::new());
    for line in text.lines() {
        if let Some(provider) = field(line, "Provider:") {
            is_ours = provider == "ulocks";
        } else if let Some(new) = field(line, "Name:") {
            name = new;
        } else if let Some(arguments) = field(line, "Arguments:")
            && is_ours
        {
            probes.insert(name.clone(), arguments.split_whitespace().filter(|arg| arg.contains('@')).count());
        }
    }
    let expected = [("acquired", 6), ("released", 1), ("reported", 3), ("wait_begin", 6), ("wait_end", 1)];
    assert_eq!(probes, expected.map(|(name, count)| (name.to_owned(), count)).into(), "{text}");
}
