//! The program `convoy` from outside: exit codes, one-line errors, what it writes.

mod common;

use common::text;
use std::process::{ExitCode, Output};
use ulocks_benches::programs::convoy::{Convoy, Record};
use ulocks_benches::programs::harness;
use ulocks_benches::report::{Ended, Mode};
use ulocks_benches::subjects::locks;

const NAME: &str = "convoy";

fn main() -> ExitCode {
    let tests: &[(&str, fn())] = &[
        ("wrong_options_are_one_line_and_exit_code_2", wrong_options_are_one_line_and_exit_code_2),
        ("foreign_filters_and_lists_run_nothing", foreign_filters_and_lists_run_nothing),
        ("a_smoke_run_leaves_a_record", a_smoke_run_leaves_a_record),
        ("a_cell_is_had_by_its_name", a_cell_is_had_by_its_name),
    ];
    common::main(&[(NAME, harness::main::<Convoy>)], tests)
}

fn run(arguments: &[&str]) -> Output {
    common::run(NAME, arguments)
}

/// The record that a run says it has written.
fn record(stderr: &str) -> Record {
    let path = stderr.lines().last().unwrap().strip_prefix("convoy: ").unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn wrong_options_are_one_line_and_exit_code_2() {
    common::refuses(NAME, &[(&["--rounds", "0"], "'0' is not a number of rounds; allowed: 1 to 1000")]);
}

fn foreign_filters_and_lists_run_nothing() {
    common::knows_its_name(NAME);
    let output = run(&["--only", "no such row"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        text(&output.stderr),
        "convoy: no row is of these --locks and has a name that contains this --only\n"
    );
}

fn a_smoke_run_leaves_a_record() {
    // With options of criterion's and of `scaling` that reach all benches of a package.
    let output = run(&["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("A smoke run: it measures nothing."), "{out}");
    let record = record(&err);
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
    for row in &record.rows {
        let entry = locks::Entry::find(&row.lock);
        assert_eq!(row.now.is_some(), entry.is_ok(), "{}", row.name);
        assert_eq!(row.reason.is_some(), entry.is_err(), "{}", row.name);
        let (Some(now), Ok(entry)) = (&row.now, entry) else { continue };
        assert_eq!(now.reentries.is_some(), entry.metered_twin().is_some(), "{}", row.name);
        assert_eq!(now.by_sysv.is_some(), row.lock != "sysv", "{}", row.name);
        assert!(now.per_s.value > 0.0 && out.contains(&row.lock), "{}", row.name);
    }
}

fn a_cell_is_had_by_its_name() {
    let arguments = ["--only", "(3,7)x100/fair", "--seconds", "0.005", "--rounds", "2"];
    let output = run(&arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let record = record(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["(3,7)x100/fair"]);
    // Two rounds of the lock and of both references, and the twin that counts once; the interval is
    // that of two rounds.
    assert_eq!(record.trials.len(), 7);
    let now = record.rows[0].now.as_ref().unwrap();
    assert_eq!(now.by_sysv.as_ref().map(|by| (by.rounds, by.interval.is_some())), Some((2, true)));
    assert_eq!(record.rows[0].then.map(|then| then.per_s), Some(24693.0));
}
