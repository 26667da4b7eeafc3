//! The program `condvar` from outside: exit codes, one-line errors, what it writes.

use crate::common::{self, refuses, run, text};
use ulocks_benches::programs::condvar::Row;
use ulocks_benches::subjects::condvars::{Entry, PEERS};

const CONDVAR: &str = "condvar";

pub fn wrong_options_are_one_line_and_exit_code_2() {
    refuses(
        CONDVAR,
        &[
            (
                &["--crews", "4"],
                "'4' is not a number of producers and of consumers; allowed: 1+1 to 1000+1000",
            ),
            (&["--crews", "0+1"], "'0+1' is not a number of producers and of consumers; allowed: "),
            (&["--capacity", "0"], "a capacity of 0 is out of range; allowed: 1 to 1000000"),
            (&["--capacity", "few"], "'few' is not a capacity; allowed: "),
            (&["--notify", "before"], "unknown order 'before'; allowed: under, after"),
            (&["--place", "here"], "unknown place 'here'; allowed: free, apart, together"),
        ],
    );
}

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
    let arguments =
        ["--crews", "2+1", "--capacity", "3", "--notify", "under", "--locks", "asym", "--rounds", "2"];
    let output = run(CONDVAR, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let record = common::record::<Row>(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["buffer/2+1/3/under/asym", "buffer/2+1/3/under/one/asym"]);
    // Two rounds of two runs.
    assert_eq!(record.trials.len(), 4 * (1 + PEERS.len()));
    let by = record.rows[0].by_best.as_ref().unwrap();
    assert!(by.rounds == 2 && PEERS.contains(&by.other.as_ref().unwrap().lock.as_str()), "{by:?}");
}
