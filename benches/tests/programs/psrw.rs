//! The program `psrw` from outside: exit codes, one-line errors, what it writes.

use crate::common;
use std::path::Path;
use ulocks_benches::programs::evidence;
use ulocks_benches::programs::psrw::Row;
use ulocks_benches::subjects::rwlocks;
use ulocks_benches::workloads::readers::Run;

const NAME: &str = "psrw";

pub fn a_smoke_run_leaves_a_record_and_a_page() {
    let (record, out, err) = common::smoke::<Row>(NAME);
    for words in ["Uncontended, ns", "High contention", "Invariance: ", "Queue: "] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let written = err.lines().rev().find_map(|line| line.strip_prefix("psrw: ")).unwrap();
    let page = Path::new(written).with_extension("html");
    evidence::write_one(Path::new(written), &page).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
    assert_eq!(record.rows.len(), record.trials.len());
    // Every lock ran, and those that say how long they keep signals off have said it.
    for entry in rwlocks::Entry::all() {
        let mine: Vec<_> = record.rows.iter().filter(|row| row.lock == entry.name).collect();
        assert!(!mine.is_empty(), "{}", entry.name);
        let behind = mine.iter().find(|row| row.run == Run::Behind);
        let masked = behind.is_some_and(|row| row.roles.iter().any(|role| role.masked.is_some()));
        assert_eq!(masked, entry.timed_mask, "{}", entry.name);
    }
}
