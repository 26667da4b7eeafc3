//! What the library defines for others: the functions that it replaces.

#[path = "../../capi/tests/harness/elf.rs"]
mod elf;

use std::collections::BTreeSet;

#[test]
fn the_library_exports_the_functions_that_it_replaces_and_no_others() {
    let folder = ulocks_testkit::cdylib::build("ulocks-sysv", env!("CARGO_TARGET_TMPDIR"), None);
    let library = elf::read(&folder.join("libulocks_sysv.so"));
    let mut expected = vec!["semctl", "semget", "semop", "semtimedop", "syscall"];
    expected.extend(["sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal"]);
    expected.extend(["siginterrupt", "sigset"]);
    assert_eq!(library.exported, expected.into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
    assert_eq!(library.soname.as_deref(), Some("libulocks_sysv.so"));
}
