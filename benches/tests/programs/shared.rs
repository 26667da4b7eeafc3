//! The program `shared` from outside: what it writes.

use crate::common;
use ulocks_benches::programs::promises::judge::Row;

pub fn a_smoke_run_leaves_a_record_of_every_row() {
    let (record, out, _) = common::smoke::<Row>("shared");
    assert!(out.contains("\npromises: "), "{out}");
    for lock in ["unfair", "robust", "robust-fair", "robust-rw"] {
        assert!(record.rows.iter().any(|row| row.lock == lock), "{lock}");
    }
    for row in &record.rows {
        assert!(row.measured.is_some(), "{}", row.name);
    }
}
