//! What the library defines for others: the functions that it replaces.

#[path = "../../capi/tests/harness/elf.rs"]
mod elf;

use std::collections::BTreeSet;
use std::process::Command;
use ulocks_testkit as _;

#[test]
fn the_library_exports_the_functions_that_it_replaces_and_no_others() {
    let exe = std::env::current_exe().expect("the test has a path");
    let target = exe.ancestors().nth(3).expect("the test is in `deps` of a profile");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--lib", "--target-dir"]);
    let status = cargo.arg(target).current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(status.success(), "the library does not build");

    let library = elf::read(&target.join("debug/libulocks_sysv.so"));
    let expected = ["semctl", "semget", "semop", "semtimedop", "syscall"].map(str::to_owned);
    assert_eq!(library.exported, BTreeSet::from(expected));
    assert_eq!(library.soname.as_deref(), Some("libulocks_sysv.so"));
}
