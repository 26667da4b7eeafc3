//! What the README's table says of sizes.

use std::mem::size_of;

#[test]
fn sizes_are_those_of_the_table() {
    let table = include_str!("../README.md");
    let size = |of: &str| {
        let row = table.lines().find(|line| line.starts_with('|') && line.contains(of));
        let cell = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
        cell.unwrap_or_else(|| panic!("the table has no row for {of}")).trim().to_owned()
    };
    assert_eq!(size("`std::sync::Mutex`"), format!("{} B", size_of::<std::sync::Mutex<()>>()));
    assert_eq!(size("`ulocks::unfair::Mutex`"), format!("{} B", size_of::<ulocks::unfair::Mutex<()>>()));
    assert_eq!(size("`ulocks::unfair::Condvar`"), format!("{} B", size_of::<ulocks::unfair::Condvar>()));
}
