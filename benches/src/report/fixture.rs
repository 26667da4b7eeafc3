//! A small record with known figures, for tests.

use super::{Cell, Ended, Kind, Lock, Mode, Report, SCHEMA, Settings, Summary, Trial};
use crate::run::machine;
use crate::workloads::Workload;
use crate::workloads::trial::{TrialResult, Waits};

pub const BARE: Workload = Workload { hold_ns: 0, non_hold_ns: 0 };
pub const BUSY: Workload = Workload { hold_ns: 3000, non_hold_ns: 7000 };

/// A record without trials: three locks and no lock, two workloads, one and two threads.
pub fn empty() -> Report {
    let lock = |name: &str, kind| Lock { name: name.into(), kind, about: format!("<{name}> & co") };
    Report {
        schema: SCHEMA.into(),
        version: "0.0.0".into(),
        took_s: 61.0,
        mode: Mode::Full,
        ended: Ended::Budget,
        resumed: Vec::new(),
        machine: machine::describe(),
        options: Settings {
            threads: vec![1, 2],
            workloads: vec![BARE, BUSY],
            pin: "scatter".into(),
            window_ms: 100,
            warmup_ms: 25,
            min_rounds: 3,
            max_rounds: 15,
            precision: 0.05,
            budget_s: Some(400.0),
            left_out: Vec::new(),
            iterations_per_us: 1000.0,
            seed: 1,
        },
        locks: vec![
            lock("ours", Kind::Family),
            lock("std", Kind::Peer),
            lock("parking_lot", Kind::Peer),
            lock("none", Kind::Baseline),
        ],
        cells: super::Cell::all(&[BARE, BUSY], &[1, 2]),
        trials: Vec::new(),
        summary: Summary::default(),
    }
}

/// A record with one trial for each round, lock and cell; `rate` gives the operations per second.
pub fn filled(rounds: u32, rate: impl Fn(&str, Cell, u32) -> f64) -> Report {
    with_trials(empty(), rounds, rate)
}

/// The same of another record without trials.
pub fn with_trials(mut report: Report, rounds: u32, rate: impl Fn(&str, Cell, u32) -> f64) -> Report {
    for round in 0..rounds {
        for lock in &report.locks {
            for (index, cell) in report.cells.iter().enumerate() {
                let operations = (rate(&lock.name, *cell, round) / 10.0) as u64;
                report.trials.push(trial(round, &lock.name, index, *cell, operations));
            }
        }
    }
    report.summary = super::summarise(&report);
    report
}

/// A window of a tenth of a second. With two threads the second has three operations for each of
/// the first.
fn trial(round: u32, lock: &str, index: usize, cell: Cell, operations: u64) -> Trial {
    let counts = match cell.threads {
        1 => vec![operations],
        _ => vec![operations / 4, operations - operations / 4],
    };
    let waits = cell.timed.then(|| Waits {
        p50: 40,
        p99: 400,
        p999: 4000 + u64::from(round),
        max: 1_000_000 * u64::from(round + 1),
        mean: 60.0,
    });
    let result = TrialResult {
        counts,
        elapsed_s: 0.1,
        user_s: 0.15 / f64::from(3 - cell.threads.min(2)),
        system_s: 0.05 / f64::from(3 - cell.threads.min(2)),
        sleeps: operations / 100,
        preemptions: 3,
        cpu_s: None,
        futexes: None,
        waits,
        meters: None,
        speed: 0.98,
    };
    Trial { round, lock: lock.into(), cell: index, result }
}

/// `ours` makes twice the operations of `std` in every round, `parking_lot` is now faster than
/// `std` and now slower, and the machine itself is up to 40 % slower from round to round.
pub fn plain(rounds: u32) -> Report {
    filled(rounds, |lock, cell, round| {
        let machine = [1.0, 0.8, 0.6, 0.9, 0.7, 1.0, 0.65][round as usize % 7];
        let lock = match lock {
            "ours" => 2.0,
            "parking_lot" => [1.1, 0.9][round as usize % 2],
            "none" => 8.0,
            _ => 1.0,
        };
        let work = if cell.workload.is_bare() { 10e6 } else { 100e3 };
        machine * lock * work
    })
}
