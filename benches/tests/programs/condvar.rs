//! The program `condvar` from outside: exit codes, one-line errors, what it writes.

use crate::common::{self, run, text};
use ulocks_benches::programs::condvar::Row;
use ulocks_benches::subjects::condvars::{Entry, PEERS};

const CONDVAR: &str = "condvar";

pub fn a_smoke_run_leaves_a_record_of_every_pair() {
    let (record, out, _) = common::smoke::<Row>(CONDVAR);
    for words in ["4+4, capacity 2", "one condition variable", "ping-pong", "notify_all of 100", "time out"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    for entry in Entry::all().iter().filter(|entry| !entry.probe) {
        assert!(out.contains(entry.about));
        let rows: Vec<_> = record.rows.iter().filter(|row| row.subject == entry.name).collect();
        assert!(rows.len() > 4 && rows.iter().all(|row| row.by_best.is_some()), "{}", entry.name);
    }
}

pub fn what_is_asked_for_is_compared_with_the_peers() {
    let arguments = ["--only", "buffer/4+4/2/under", "--locks", "asym", "--seconds", "0.01", "--rounds", "2"];
    let output = run(CONDVAR, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let record = common::record::<Row>(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["buffer/4+4/2/under/asym"]);
    // Two rounds.
    assert_eq!(record.trials.len(), 2 * (1 + PEERS.len()));
    let by = record.rows[0].by_best.as_ref().unwrap();
    assert!(by.rounds == 2 && PEERS.contains(&by.other.as_ref().unwrap().lock.as_str()), "{by:?}");
}
