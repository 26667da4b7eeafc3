//! The oracle: a C program prints the same under the kernel's semaphores and under the library.

#[path = "../common/mod.rs"]
mod common;

use common::{Arrays, compile, folder, preloaded, printed};
use std::process::Command;
use ulocks_testkit as _;

const SOURCES: [&str; 5] = [
    "differential/kit.c",
    "differential/sets.c",
    "differential/sleepers.c",
    "differential/deaths.c",
    "differential/pointers.c",
];

/// The kernel's limits, for the library.
fn limits() -> Vec<(&'static str, String)> {
    let text = std::fs::read_to_string("/proc/sys/kernel/sem").unwrap_or_default();
    let names = ["ULOCKS_SYSV_SEMMSL", "ULOCKS_SYSV_SEMMNS", "ULOCKS_SYSV_SEMOPM", "ULOCKS_SYSV_SEMMNI"];
    names.into_iter().zip(text.split_whitespace().map(String::from)).collect()
}

fn compare(name: &str, table: &str, strict: &str, least: usize) {
    let folder = folder(name);
    let program = compile(&folder, &SOURCES);
    let arrays = Arrays::new(name);
    arrays.let_in_all_users(); // Some cases have a second user.
    let kernel = printed(Command::new(&program).arg(table));
    let mut with = preloaded(&program, &arrays, strict == "1");
    let library = printed(with.arg(table).env("ULOCKS_SYSV_STRICT", strict).envs(limits()));
    assert!(!kernel.contains("no array"), "this kernel has no semaphores to compare with");
    assert!(kernel.lines().count() >= least, "only these cases ran:\n{kernel}");
    assert!(arrays.0.join("registry").exists(), "the library was not used");
    for (kernel, library) in kernel.lines().zip(library.lines()) {
        assert_eq!(library, kernel, "the library is on the left, the kernel on the right");
    }
    assert_eq!(library.lines().count(), kernel.lines().count());
    let left = std::fs::read_dir(&arrays.0).unwrap().count();
    assert_eq!(left, 1, "arrays were left behind");
}

#[test]
fn sets_and_errors() {
    compare("sets", "sets", "0", 35);
}

#[test]
fn sleepers() {
    compare("sleepers", "sleepers", "0", 30);
}

#[test]
fn deaths_and_permissions() {
    compare("deaths", "deaths", "0", 35);
}

#[test]
fn all_of_it_with_checked_pointers() {
    compare("strict", "all", "1", 110);
}
