//! The program `promises` from outside: exit codes, one-line errors, what it writes.

mod common;

use common::text;
use std::process::{Command, ExitCode, Output, Stdio};
use ulocks_benches::programs::harness;
use ulocks_benches::programs::promises::judge::{Verdict, judge};
use ulocks_benches::programs::promises::{Promises, Record, is_built, list};
use ulocks_benches::report::{Ended, Mode};

const NAME: &str = "promises";

fn main() -> ExitCode {
    let tests: &[(&str, fn())] = &[
        ("wrong_options_are_one_line_and_exit_code_2", wrong_options_are_one_line_and_exit_code_2),
        ("foreign_filters_and_lists_run_nothing", foreign_filters_and_lists_run_nothing),
        ("a_smoke_run_leaves_a_record_that_explains_its_rows", a_smoke_run_leaves_a_record),
        ("an_interrupt_leaves_what_there_is", an_interrupt_leaves_what_there_is),
    ];
    common::main(&[(NAME, harness::main::<Promises>)], tests)
}

fn program(arguments: &[&str]) -> Command {
    common::program(NAME, arguments)
}

fn run(arguments: &[&str]) -> Output {
    common::run(NAME, arguments)
}

/// The record that a run says it has written.
fn record(stderr: &str) -> Record {
    let path = stderr.lines().last().unwrap().strip_prefix("promises: ").unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn wrong_options_are_one_line_and_exit_code_2() {
    let wrong: &[(&[&str], &str)] = &[
        (&["--rounds", "0"], "'0' is not a number of rounds; allowed: 1 to 1000"),
        (&["--seconds", "0"], "allowed: 0.001 to 3600"),
        (&["--locks", "lockless"], "unknown lock 'lockless'; allowed: "),
        (&["--onyl", "asym"], "unexpected argument '--onyl'; allowed: "),
    ];
    common::refuses(NAME, wrong);
}

fn foreign_filters_and_lists_run_nothing() {
    common::knows_its_name(NAME);
    let output = run(&["--only", "no such promise"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        text(&output.stderr),
        "promises: no row is of these --locks and has a name that contains this --only\n"
    );
}

fn a_smoke_run_leaves_a_record() {
    // With options of criterion's and of `scaling` that reach all benches of a package.
    let output = run(&["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("A smoke run: it measures nothing.") && out.contains("\npromises: "), "{out}");
    let record = record(&err);
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
    assert!(!record.trials.is_empty());
    for row in &record.rows {
        let built = is_built(&row.lock);
        assert_eq!(row.verdict == Verdict::NotBuilt, !built, "{}", row.name);
        assert_eq!(row.measured.is_some(), built && row.reason.is_none(), "{}", row.name);
        // One round has no interval, and without one there is no verdict.
        let said = [Verdict::None, Verdict::Shown, Verdict::NoData, Verdict::NotBuilt];
        assert!(said.contains(&row.verdict), "{}: {}", row.name, row.verdict);
    }
    // What is shown can be computed again from the trials.
    let promises = list::all(record.machine.cpus_allowed as u32);
    for row in &record.rows {
        let promise = promises.iter().find(|promise| promise.name == row.name).unwrap();
        let again = judge(promise, is_built(&row.lock), &record.trials);
        assert_eq!((again.measured, again.verdict), (row.measured.clone(), row.verdict), "{}", row.name);
    }
}

fn an_interrupt_leaves_what_there_is() {
    let arguments = ["--only", "one-cpu", "--seconds", "0.5", "--rounds", "50"];
    let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    // The signals are blocked before the first round, which takes seconds.
    while !said.contains("round 1 of 50") {
        assert!(std::io::BufRead::read_line(&mut stderr, &mut said).unwrap() > 0, "no round: {said}");
    }
    // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still its
    // own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(text(&output.stdout).contains("The run was interrupted"));
    let record = record(&said);
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(record.rows.iter().any(|row| row.measured.is_some()));
}
