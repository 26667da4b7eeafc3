use super::*;
use crate::programs::harness::{asked, keeps_the_time};
use crate::subjects::condvars::Entry;
use crate::workloads::cell::Answer;
use crate::workloads::condvars::Outcome;
use std::collections::HashSet;

const LOAD: Load =
    Load::Buffer { producers: 4, consumers: 4, capacity: 2, notify: Notify::After, one: false };
const RUN: Run = Run { load: LOAD, place: Place::Free };

/// A trial of a second in which so many items were taken out, with so much CPU time and half as
/// many context switches.
fn trial(round: u32, name: &str, ops: u64, cpu_s: f64) -> Trial {
    let counts = vec![ops / 2, ops / 2];
    let outcome = Outcome { elapsed_s: 1.0, cpu_s, switches: ops / 2, ops, counts };
    Trial { round, locks: vec![name.into()], cell: Cell::Condvar(RUN), answer: Answer::Condvar(outcome) }
}

#[test]
fn a_row_is_what_its_trials_come_to() {
    // std does more, and pays more for it: its price counts.
    let round = |round| {
        [
            trial(round, "std", 2000, 2.0),
            trial(round, "parking_lot", 1000, 0.5),
            trial(round, "fair", 1800, 3.6),
        ]
    };
    let trials: Vec<Trial> = (0..3).flat_map(round).collect();
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    let row = |name| Row::new(&Subject { entry: Entry::find(name).unwrap(), run: RUN }, &trials);
    let fair = row("fair").unwrap();
    assert!(near(fair.per_s.value, 1800.0) && near(fair.cpu_ns, 2e6), "{fair:?}");
    assert_eq!((fair.switches, fair.cov, fair.name.as_str()), (0.5, 0.0, "buffer/4+4/2/after/fair"));
    let by = fair.by_best.unwrap();
    assert!(near(by.value, 0.9) && near(fair.cpu_by_best.unwrap().value, 2.0));
    assert_eq!(by.other.unwrap().lock, "std");
    // A peer is compared with the other.
    let std = row("std").unwrap();
    assert!(near(std.by_best.unwrap().value, 2.0) && near(std.cpu_by_best.unwrap().value, 2.0));
    assert!(row("asym").is_none());
}

#[test]
fn a_part_of_the_table_keeps_its_peers() {
    let subjects = asked::<Condvar>(&["--only", "buffer/4+4/2/after/fair"], Mode::Full).1;
    assert_eq!(subjects.len(), 1);
    let locks: Vec<_> =
        Condvar::trials(&subjects).0.into_iter().map(|probe| (probe.cell, probe.locks.concat())).collect();
    assert_eq!(locks, ["fair", "std", "parking_lot"].map(|lock| (Cell::Condvar(RUN), lock.to_owned())));
}

#[test]
fn names_are_unique() {
    let subjects = asked::<Condvar>(&[], Mode::Full).1;
    let names: HashSet<String> = subjects.iter().map(Subject::name).collect();
    assert_eq!(names.len(), subjects.len());
}

#[test]
fn the_time_there_is_is_kept() {
    keeps_the_time::<Condvar>(6.0, 3);
}
