//! The program `promises` from outside: exit codes, one-line errors, what it writes.

use crate::common::{self, text};
use std::process::{Command, Stdio};
use ulocks_benches::programs::promises::judge::{Row, Verdict, judge};
use ulocks_benches::programs::promises::list;
use ulocks_benches::report::Ended;

const NAME: &str = "promises";

fn program(arguments: &[&str]) -> Command {
    common::program(NAME, arguments)
}

pub fn wrong_options_are_one_line_and_exit_code_2() {
    let wrong: &[(&[&str], &str)] = &[(&["--seconds", "0"], "allowed: 0.001 to 3600")];
    common::refuses(NAME, wrong);
}

pub fn a_smoke_run_leaves_a_record_that_explains_its_rows() {
    let (record, out, _) = common::smoke::<Row>(NAME);
    assert!(out.contains("\npromises: "), "{out}");
    assert!(!record.trials.is_empty());
    for row in &record.rows {
        assert_eq!(row.measured.is_some(), row.reason.is_none(), "{}", row.name);
        // One round has no interval, and without one there is no verdict.
        let said = [Verdict::None, Verdict::Shown, Verdict::NoData];
        assert!(said.contains(&row.verdict), "{}: {}", row.name, row.verdict);
    }
    // What is shown can be computed again from the trials.
    let promises = list::all(record.machine.cpus_allowed as u32);
    for row in &record.rows {
        let promise = promises.iter().find(|promise| promise.name == row.name).unwrap();
        let again = judge(promise, &record.trials);
        assert_eq!((again.measured, again.verdict), (row.measured.clone(), row.verdict), "{}", row.name);
    }
}

pub fn an_interrupt_leaves_what_there_is() {
    let arguments = ["--only", "one-cpu", "--seconds", "0.5", "--rounds", "20"];
    let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    // The signals are blocked before the first trial; two rounds of them take seconds.
    while !said.contains("promises: 10 % done") {
        assert!(std::io::BufRead::read_line(&mut stderr, &mut said).unwrap() > 0, "no round: {said}");
    }
    // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still its
    // own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(text(&output.stdout).contains("The run was interrupted"));
    let record = common::record::<Row>(&said);
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(record.rows.iter().any(|row| row.measured.is_some()));
}
