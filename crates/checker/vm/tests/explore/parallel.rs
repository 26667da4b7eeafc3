//! Explorations on several threads of the system show what one alone shows.

use crate::{discard, shared};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ulocks_vm::explore::{Config, Report, check, run, run_deepening, run_on, run_parallel};
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
    shared(Words::default()).threads([body; 3])
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

/// Each limit of preemptions is explored in turn, until one leaves nothing out.
#[test]
fn limits_rise_until_one_leaves_nothing_out() {
    let (config, seen) = (Config { stale: 0, ..Config::exhaustive() }, Arc::new(Mutex::new(BTreeSet::new())));
    let into = Arc::clone(&seen);
    let report = run_deepening(2, &config, move || {
        let outcome = model();
        into.lock().unwrap().insert(outcome);
    })
    .expect("nothing goes wrong");
    let all = Arc::new(Mutex::new(BTreeSet::new()));
    let into = Arc::clone(&all);
    let whole = run_on(2, &config, move || {
        let outcome = model();
        into.lock().unwrap().insert(outcome);
    });
    assert!(report.finished && report.within.is_some_and(|most| (2..7).contains(&most)), "{report}");
    assert_eq!(report.complete, whole.expect("nothing goes wrong").complete);
    assert_eq!(*seen.lock().unwrap(), *all.lock().unwrap());
}

#[test]
fn a_limit_that_is_asked_for_is_the_last() {
    let config = Config { preemptions: Some(1), ..Config::exhaustive() };
    let report = run_deepening(1, &config, || discard(model())).expect("nothing goes wrong");
    assert!(report.finished && !report.complete && report.within == Some(1), "{report}");
}

/// What takes one preemption is found within the limit of one.
#[test]
fn a_failure_is_found_within_the_lowest_limit_that_has_it() {
    let failure = run_deepening(2, &Config::exhaustive(), || {
        let [seen, _] = shared(AtomicU32::new(0)).threads([
            |word: &AtomicU32| {
                word.store(1, Relaxed);
                word.load(Relaxed)
            },
            |word: &AtomicU32| {
                word.store(2, Relaxed);
                2
            },
        ]);
        assert_eq!(seen, 1);
    });
    let text = failure.expect_err("it goes wrong").to_string();
    assert!(text.contains("up to 1 preemptions"), "{text}");
}

#[test]
fn what_the_clock_has_cut_is_estimated() {
    let config = Config { budget: Some(Duration::from_millis(50)), ..Config::exhaustive() };
    let large = || {
        shared(AtomicU32::new(0))
            .threads([|word: &AtomicU32| (0..6).map(|_| word.fetch_add(1, Relaxed)).sum::<u32>(); 4]);
    };
    let report = run_deepening(2, &config, large).expect("nothing goes wrong");
    let text = report.to_string();
    assert!(report.out_of_time && report.within.is_some() && report.share.is_some(), "{text}");
    assert!(text.contains("all with ") && text.contains("an estimated "), "{text}");
    let report = run(&config, large).expect("nothing goes wrong");
    assert!(report.to_string().contains(" % of all) of up to "), "{report}");
}

/// Ten additions by five threads: 113,400 orders.
fn five() {
    shared(AtomicU32::new(0))
        .threads([|word: &AtomicU32| (0..2).map(|_| word.fetch_add(1, Relaxed)).sum::<u32>(); 5]);
}

/// Executions at the same time disturb each other's count, and one after the other they do not.
#[test]
fn a_static_of_std_fails_no_large_model() {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let config = Config { stale: 0, executions: u64::MAX, ..Config::exhaustive() };
    let report = check(&config, || {
        COUNT.store(0, Relaxed);
        shared(AtomicU32::new(0)).threads(
            [|word: &AtomicU32| {
                (0..2).map(|_| word.fetch_add(1, Relaxed) + COUNT.fetch_add(1, Relaxed)).sum::<u32>()
            }; 5],
        );
        assert_eq!(COUNT.load(Relaxed), 10);
    });
    assert!(report.finished && report.executions >= 113_400, "{report}");
}

#[test]
fn a_large_model_is_explored_on_all_cpus_and_by_rising_limits() {
    let config = Config { stale: 0, executions: u64::MAX, ..Config::exhaustive() };
    let whole = check(&config, five);
    assert!(whole.finished && whole.within.is_none() && whole.executions >= 113_400, "{whole}");
    // It does not need as long, so a machine that is busy may take it.
    let config = Config { budget: Some(Duration::MAX), ..config };
    let rising = check(&config, five);
    assert!(rising.finished && rising.within.is_some(), "{rising}");
    let small = check(&config, || discard(model()));
    assert!(small.finished && small.within.is_none(), "{small}");
}
