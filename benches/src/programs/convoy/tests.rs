use super::*;
use crate::programs::harness::{Subject as _, asked, keeps_the_time, plan};
use crate::report::units;
use crate::subjects::locks::Meters;
use crate::workloads::cell::{Answer, Trial};
use crate::workloads::trial::TrialResult;
use std::collections::HashSet;

const ONE_NINE: Workload = Workload { hold_ns: 1_000, non_hold_ns: 9_000 };

fn subject(name: &str, children: u32) -> Subject {
    let lock = *LOCKS.iter().find(|lock| lock.name == name).unwrap();
    Subject { lock, workload: ONE_NINE, children }
}

/// A trial in which a lock made so many loops in a second.
fn trial(round: u32, lock: &str, children: u32, loops: u64, meters: Option<Meters>) -> Trial {
    let result = TrialResult {
        counts: vec![loops / 2, loops / 2],
        elapsed_s: 1.0,
        cpu_s: Some(2.0),
        meters,
        ..TrialResult::default()
    };
    let subject = subject(SYSV, children);
    let cell = if meters.is_some() { subject.counting_cell() } else { subject.cell() };
    Trial { round, locks: vec![lock.into()], cell, answer: Answer::Loop(result) }
}

#[test]
fn the_table_is_his() {
    let (_, rows) = asked::<Convoy>(&[], Mode::Full);
    assert_eq!(rows.len(), LOCKS.len() * CHILDREN.len() * WORKLOADS_US.len());
    let names: HashSet<_> = rows.iter().map(Subject::name).collect();
    assert!(names.len() == rows.len() && names.contains("(1,9)x1000/calock"));
    // Every figure of his that belongs to one of these locks stands beside one of these rows.
    let has = |row: &&seed::Figures| LOCKS.iter().any(|l| l.then == Letter(row.letter, row.patience_us));
    let compared: HashSet<_> = rows
        .iter()
        .filter_map(|row| seed::find(row.lock.then, row.workload, row.children))
        .map(|row| (row.letter, row.patience_us, row.workload, row.children))
        .collect();
    assert_eq!(compared.len(), seed::rows().iter().filter(has).count());
    // All of them work between processes.
    assert!(LOCKS.iter().all(|lock| Entry::find(lock.name).unwrap().processes));
}

#[test]
fn a_part_of_the_table_keeps_what_ratios_are_taken_to() {
    let (cli, rows) = asked::<Convoy>(&["--only", "(1,9)x4/fair"], Mode::Quick);
    assert_eq!(rows.iter().map(Subject::name).collect::<Vec<_>>(), ["(1,9)x4/fair"]);
    let plan = plan::<Convoy>(&cli, Mode::Quick, &rows, 1000.0);
    let locks: Vec<_> = plan.probes.iter().map(|probe| probe.locks[0].as_str()).collect();
    assert_eq!(locks, ["fair", SYSV, SEMAPHORE]);
    assert_eq!(plan.once.len(), 1);
    assert_eq!((plan.round(0, 1).len(), plan.round(1, 1).len()), (4, 3));

    let (_, rows) = asked::<Convoy>(&["--locks", "none,std"], Mode::Full);
    assert!(rows.len() == 18 && rows.iter().all(|row| row.lock.name == "none"));
}

#[test]
fn the_time_there_is_is_kept() {
    keeps_the_time::<Convoy>(5.0, 3);
}

#[test]
fn a_row_has_what_was_measured_beside_what_he_measured() {
    let meters = Meters { acquired: 1000, contended: 500, slept: 1500, ..Meters::default() };
    let mut trials = vec![trial(0, "fair-counted", 1000, 1, Some(meters))];
    for round in 0..3 {
        trials.push(trial(round, "fair", 1000, 60_000, None));
        trials.push(trial(round, SYSV, 1000, 30_000, None));
        trials.push(trial(round, SEMAPHORE, 1000, 40_000, None));
        // Of another cell.
        trials.push(trial(round, SYSV, 100, 7, None));
    }
    let row = Row::new(&subject("fair", 1000), &trials);
    let now = row.now.unwrap();
    assert_eq!(row.name, "(1,9)x1000/fair");
    assert_eq!((now.by_sysv.unwrap().value, now.by_semaphore.unwrap().value), (2.0, 1.5));
    assert_eq!((now.contended, now.reentries, now.cov), (Some(50.0), Some(3.0), 0.0));
    assert!((now.per_s.value - 60_000.0).abs() < 1e-6 && (now.cpu_ns.unwrap() - 2e9 / 6e4).abs() < 1e-6);
    assert_eq!(row.then.unwrap().per_s, 2640.0);
    assert_eq!(units::fixed(row.then_by_sysv.unwrap()), "1.94");

    // No lock is compared with itself, and SysV does not count.
    let sysv = Row::new(&subject(SYSV, 1000), &trials).now.unwrap();
    assert_eq!((sysv.by_sysv, sysv.contended, sysv.by_semaphore.unwrap().value), (None, None, 0.75));
    assert_eq!(Row::new(&subject("none", 1000), &trials).now, None);
}

#[test]
fn the_text_shows_both_tables() {
    let trials: Vec<Trial> = (0..2)
        .flat_map(|round| [trial(round, "fair", 1000, 60_000, None), trial(round, SYSV, 1000, 30_000, None)])
        .collect();
    let rows = ["fair", SYSV].map(|lock| Row::new(&subject(lock, 1000), &trials));
    let record = Record::of(rows.to_vec(), trials);
    let text = text::tables(&record);
    let line = text.lines().find(|line| line.contains("  fair  ")).unwrap();
    let fields: Vec<_> = line.split_whitespace().collect();
    assert_eq!(fields[..7], ["1000", "fair", "60.0k", "2.64k", "2.00", "[2.00", "2.00]"]);
    assert_eq!(fields[7], "1.94", "{line}");
}
