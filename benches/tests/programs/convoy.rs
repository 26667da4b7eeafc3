//! The program `convoy` from outside: exit codes, one-line errors, what it writes.

use crate::common::{self, text};
use ulocks_benches::programs::convoy::Row;
use ulocks_benches::subjects::locks;

const NAME: &str = "convoy";

pub fn a_smoke_run_leaves_a_record() {
    let (record, out, _) = common::smoke::<Row>(NAME);
    for row in &record.rows {
        let (now, entry) = (row.now.as_ref().unwrap(), locks::Entry::find(&row.lock).unwrap());
        assert_eq!(now.reentries.is_some(), entry.metered_twin().is_some(), "{}", row.name);
        assert_eq!(now.by_sysv.is_some(), row.lock != "sysv", "{}", row.name);
        assert!(now.per_s.value > 0.0 && out.contains(&row.lock), "{}", row.name);
    }
}

pub fn a_cell_is_had_by_its_name() {
    let arguments = ["--only", "(3,7)x100/fair", "--seconds", "0.005", "--rounds", "2"];
    let output = common::run(NAME, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let record = common::record::<Row>(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["(3,7)x100/fair"]);
    // Two rounds of the lock and of both references, and the twin that counts once; the interval is
    // that of two rounds.
    assert_eq!(record.trials.len(), 7);
    let now = record.rows[0].now.as_ref().unwrap();
    assert_eq!(now.by_sysv.as_ref().map(|by| (by.rounds, by.interval.is_some())), Some((2, true)));
    assert_eq!(record.rows[0].then.map(|then| then.per_s), Some(24693.0));
}
