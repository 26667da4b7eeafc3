//! The program `condvar` from outside: exit codes, one-line errors, what it writes.

mod common;

use common::{refuses, run, text};
use std::process::ExitCode;
use ulocks_benches::programs::condvar::{Condvar, Record};
use ulocks_benches::programs::harness;
use ulocks_benches::report::{Ended, Mode};
use ulocks_benches::subjects::condvars::{Entry, PEERS};

const CONDVAR: &str = "condvar";

fn main() -> ExitCode {
    common::main(
        &[(CONDVAR, harness::main::<Condvar>)],
        &[
            ("wrong_options_are_one_line_and_exit_code_2", wrong_options_are_one_line_and_exit_code_2),
            ("foreign_filters_and_lists_run_nothing", foreign_filters_and_lists_run_nothing),
            ("a_smoke_run_leaves_a_record_of_every_pair", a_smoke_run_leaves_a_record_of_every_pair),
            ("what_is_asked_for_is_compared_with_the_peers", what_is_asked_for_is_compared_with_the_peers),
        ],
    )
}

/// The record that a run says it has written.
fn record(stderr: &str) -> Record {
    let (_, path) = stderr.lines().last().unwrap().split_once(": ").unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn wrong_options_are_one_line_and_exit_code_2() {
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
            (&["--locks", "lockless"], "unknown lock 'lockless'; allowed: "),
            (&["--onyl", "buffer"], "unexpected argument '--onyl'; allowed: "),
        ],
    );
}

fn foreign_filters_and_lists_run_nothing() {
    common::knows_its_name(CONDVAR);
    let output = run(CONDVAR, &["--only", "no such run"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        text(&output.stderr),
        "condvar: no row is of these --locks and has a name that contains this --only\n"
    );
}

/// With options of criterion's and of `scaling` that reach all benches of a package.
fn a_smoke_run_leaves_a_record_of_every_pair() {
    let output = run(CONDVAR, &["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("A smoke run: it measures nothing."), "{out}");
    for words in ["4+4, capacity 2", "one condition variable", "ping-pong", "notify_all of 100", "time out"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let record = record(&err);
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
    for entry in Entry::all().iter().filter(|entry| !entry.probe) {
        assert!(out.contains(entry.about));
        let rows: Vec<_> = record.rows.iter().filter(|row| row.subject == entry.name).collect();
        assert!(rows.len() > 4 && rows.iter().all(|row| row.by_best.is_some()), "{}", entry.name);
    }
}

fn what_is_asked_for_is_compared_with_the_peers() {
    let arguments =
        ["--crews", "2+1", "--capacity", "3", "--notify", "under", "--locks", "asym", "--rounds", "2"];
    let output = run(CONDVAR, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let record = record(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["buffer/2+1/3/under/asym", "buffer/2+1/3/under/one/asym"]);
    // Two rounds of two runs.
    assert_eq!(record.trials.len(), 4 * (1 + PEERS.len()));
    let by = record.rows[0].by_best.as_ref().unwrap();
    assert!(by.rounds == 2 && PEERS.contains(&by.other.as_ref().unwrap().lock.as_str()), "{by:?}");
}
