//! The program `psrw` from outside: exit codes, one-line errors, what it writes.

mod common;

use common::text;
use std::process::{ExitCode, Output};
use ulocks_benches::programs::harness;
use ulocks_benches::programs::psrw::{Psrw, Record};
use ulocks_benches::report::{Ended, Mode};
use ulocks_benches::subjects::rwlocks;
use ulocks_benches::workloads::readers::Run;

const NAME: &str = "psrw";

fn main() -> ExitCode {
    let tests: &[(&str, fn())] = &[
        ("wrong_options_are_one_line_and_exit_code_2", wrong_options_are_one_line_and_exit_code_2),
        ("foreign_filters_and_lists_run_nothing", foreign_filters_and_lists_run_nothing),
        ("a_smoke_run_leaves_a_record_and_a_page", a_smoke_run_leaves_a_record_and_a_page),
    ];
    common::main(&[(NAME, harness::main::<Psrw>)], tests)
}

fn run(arguments: &[&str]) -> Output {
    common::run(NAME, arguments)
}

fn wrong_options_are_one_line_and_exit_code_2() {
    let wrong: &[(&[&str], &str)] = &[
        (&["--rounds", "0"], "'0' is not a number of rounds; allowed: 1 to 1000"),
        (&["--locks", "lockless"], "unknown lock 'lockless'; allowed: "),
        (&["--onyl", "queue"], "unexpected argument '--onyl'; allowed: "),
    ];
    common::refuses(NAME, wrong);
}

fn foreign_filters_and_lists_run_nothing() {
    common::knows_its_name(NAME);
    let output = run(&["--only", "no such run"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        text(&output.stderr),
        "psrw: no row is of these --locks and has a name that contains this --only\n"
    );
}

fn a_smoke_run_leaves_a_record_and_a_page() {
    // With options of criterion's and of `scaling` that reach all benches of a package.
    let output = run(&["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    for words in
        ["Uncontended, ns", "High contention", "Invariance: ", "Queue: ", "A smoke run: it measures nothing."]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    let mut paths = err.lines().rev().filter_map(|line| line.strip_prefix("psrw: "));
    let (record, page) = (paths.next().unwrap(), paths.next().unwrap());
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
    let record: Record = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
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
