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
    expected.extend(["__sigaction", "siginterrupt", "sigset", "sigignore"]);
    assert_eq!(library.exported, expected.into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
    assert_eq!(library.soname.as_deref(), Some("libulocks_sysv.so"));
}

#[test]
fn the_man_page_has_each_variable_of_the_readme() {
    let (page, readme) = (include_str!("../man/libulocks_sysv.7"), include_str!("../README.md"));
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let names: Vec<_> = rows.filter(|name| name.starts_with("ULOCKS_SYSV_")).collect();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        assert!(page.contains(name), "{name}");
    }
}
