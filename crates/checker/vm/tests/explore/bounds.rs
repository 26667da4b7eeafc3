//! What a report says of the bounds that left executions out.

use crate::shared;
use std::time::Duration;
use ulocks_vm::explore::{Config, Report, explore, run};
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::sync::{AtomicU32, spin_until};

fn all(model: impl Fn() + 'static) -> Report {
    let report = explore(Config::exhaustive(), model);
    assert!(report.finished && report.complete != report.bounds.is_hit(), "{report}");
    report
}

/// The wrong program passes, for two failures in a row are out of bounds; the report says so.
#[test]
fn two_failures_in_a_row_of_a_weak_exchange() {
    let exchanges = |count: u32, most: u32| {
        all(move || {
            let word = AtomicU32::new(0);
            let fails = |_: &u32| word.compare_exchange_weak(0, 1, Relaxed, Relaxed) == Err(0);
            assert!((0..count).filter(fails).count() <= most as usize);
        })
    };
    let at = line!() - 4;
    let report = exchanges(2, 1);
    let hit = report.bounds.weak_failures.expect("the second one did not fail");
    assert_eq!((hit.at.line(), hit.times), (at, 1));
    assert!(hit.at.file().ends_with("bounds.rs"));
    assert!(report.bounds.stale.is_none() && report.bounds.rounds.is_none(), "{report}");
    let text = report.to_string();
    assert!(text.contains("left out: a second failure in a row of a weak exchange ("), "{text}");
    assert!(exchanges(1, 1).complete);
}

/// Reads of an old value, after another word has told that there is a newer one.
fn old_reads<const COUNT: usize>() -> Report {
    all(|| {
        shared([0; 2].map(AtomicU32::new)).threads::<(), 2>([
            |[value, flag]| {
                value.store(1, Relaxed);
                flag.store(1, Relaxed);
            },
            |[value, flag]| {
                if flag.load(Relaxed) == 1 {
                    let old = (0..COUNT).take_while(|_| value.load(Relaxed) == 0).count();
                    assert!(old < 4, "an old value four times in a row");
                }
            },
        ]);
    })
}

/// Four reads in a row of an old value are out of bounds, and so the wrong program passes.
#[test]
fn the_fourth_read_of_an_old_value() {
    let report = old_reads::<4>();
    let hit = report.bounds.stale.expect("the fourth read had to see the newest value");
    assert_eq!(hit.at.line(), line!() - 13);
    assert!(report.to_string().contains("left out: an old value read as often in a row as allowed ("));
    assert!(old_reads::<3>().complete);
}

/// A round that counts is another one each time, and the machine does not know.
#[test]
fn a_round_that_would_do_the_same() {
    let report = all(|| {
        shared(AtomicU32::new(0))
            .threads::<(), 2>([|word| word.store(1, Relaxed), |word| spin_until(|| word.load(Relaxed) == 1)]);
    });
    assert!(report.bounds.rounds.is_some() && report.bounds.stale.is_none(), "{report}");
}

/// Sequentially consistent memory is a bound, too.
#[test]
fn newest_values_only() {
    let config = Config { stale: 0, ..Config::exhaustive() };
    let report = explore(config, || {
        shared(AtomicU32::new(0))
            .threads::<(), 2>([|word| word.store(1, Relaxed), |word| _ = word.load(Relaxed)]);
    });
    assert!(report.finished && report.bounds.stale.is_some(), "{report}");
}

#[test]
fn an_exploration_that_its_budget_cuts_says_so_and_is_not_complete() {
    let config = Config { budget: Some(Duration::ZERO), ..Config::exhaustive() };
    let model = || {
        let _ = shared(AtomicU32::new(0)).threads([|word: &AtomicU32| word.fetch_add(1, Relaxed); 2]);
    };
    let report = explore(config, model);
    assert_eq!(
        (report.executions, report.out_of_time, report.finished, report.complete),
        (1, true, false, false)
    );
    assert!(report.to_string().starts_with("cut by the clock: 1 executions"), "{report}");

    let report = explore(Config { budget: Some(Duration::MAX), ..Config::exhaustive() }, model);
    assert_eq!(
        (report.executions, report.out_of_time, report.finished, report.complete),
        (2, false, true, true)
    );
}

/// As many steps as are allowed are no livelock.
#[test]
fn an_execution_may_take_as_many_steps_as_are_allowed() {
    let model = || {
        let word = AtomicU32::new(0);
        word.store(1, Relaxed);
        word.store(2, Relaxed);
    };
    let with = |max_steps| run(&Config { max_steps, ..Config::exhaustive() }, model);
    assert_eq!(with(1).expect_err("too few").verdict.kind(), "livelock");
    assert!(with(2).is_ok_and(|report| report.complete));
}
