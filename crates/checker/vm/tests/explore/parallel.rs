//! Explorations on several threads of the system show what one alone shows.

use crate::{discard, threads};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use ulocks_vm::explore::{Config, Report, run, run_on, run_parallel};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};

type Words = [AtomicU32; 2];

/// What three threads see of each other's counts and stores.
fn model() -> [[u32; 2]; 3] {
    let body = |words: &Words| {
        let count = words[0].fetch_add(1, Relaxed);
        words[1].store(10 + count, Release);
        [count, words[1].load(Acquire)]
    };
    threads(Words::default(), [body; 3])
}

/// The report and the outcomes on so many threads of the system.
fn on(workers: usize) -> (Report, BTreeSet<[[u32; 2]; 3]>) {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let into = Arc::clone(&seen);
    let report = run_on(workers, &Config::exhaustive(), move || {
        let outcome = model();
        into.lock().unwrap().insert(outcome);
    });
    let outcomes = seen.lock().unwrap().clone();
    (report.expect("nothing goes wrong"), outcomes)
}

#[test]
fn the_report_does_not_depend_on_the_number_of_workers() {
    let alone = run(&Config::exhaustive(), || discard(model())).unwrap();
    let (report, outcomes) = on(1);
    assert_eq!((report.executions, report.finished), (alone.executions, true));
    assert!(report.executions > 100 && outcomes.len() > 20, "{report}, {} outcomes", outcomes.len());
    for workers in [2, 3, 8] {
        assert_eq!(on(workers), (report, outcomes.clone()), "{workers} workers");
    }
}

#[test]
fn the_first_failure_in_the_order_of_the_answers_is_returned() {
    let wrong = || assert_ne!(model()[2][1], 10, "the third thread sees the first store");
    let failure = |workers| run_on(workers, &Config::exhaustive(), wrong).unwrap_err();
    let (one, alone) = (failure(1), run(&Config::exhaustive(), wrong).unwrap_err());
    assert_eq!(one.verdict.kind(), alone.verdict.kind());
    for workers in [2, 3, 8] {
        let several = failure(workers);
        assert_eq!(
            (&several.verdict, several.execution, &several.replay),
            (&one.verdict, one.execution, &one.replay),
            "{workers} workers"
        );
    }
    let again = run(&Config::exhaustive().replaying(&one.replay), wrong).unwrap_err();
    assert_eq!(again.verdict, one.verdict);
}

#[test]
fn a_limit_cuts_all_workers() {
    let config = Config { executions: 50, ..Config::exhaustive() };
    let report = run_on(3, &config, || discard(model())).unwrap();
    // The redundant ones count, too.
    let all = report.executions + report.redundant;
    assert!(!report.finished && !report.complete && all >= 50, "{report}");
}

#[test]
fn executions_by_chance_are_those_of_one_thread() {
    let config = Config::sampled(100);
    let [several, alone] = [run_parallel(&config, || discard(model())), run(&config, || discard(model()))];
    assert_eq!(several.unwrap(), alone.unwrap());
}
