use super::*;
use crate::programs::harness::{Subject as _, asked, keeps_the_time};
use crate::run::clock::Calibration;
use crate::statistics::delays::Delay;
use crate::workloads::cell::{Answer, Trial};
use crate::workloads::readers::{Outcome, RoleOutcome};

/// An outcome in which the probe waited so long, in ticks of half a nanosecond.
fn outcome(role: &str, ticks: u64) -> Outcome {
    let delay = Delay {
        count: 1000,
        min: ticks / 4,
        mean: ticks as f64,
        p50: ticks / 2,
        p99: ticks,
        p999: 2 * ticks,
        max: 3 * ticks,
    };
    Outcome {
        clock: Calibration { per_ns: 2.0, empty: [40, 42, 60], step: 2 },
        elapsed_s: 0.5,
        steal_s: Some(0.0),
        roles: vec![RoleOutcome {
            name: role.into(),
            counts: vec![600, 400],
            attempts: 1000,
            failures: 0,
            lock: Some(delay),
            unlock: Some(delay),
            masked: None,
            held_off: None,
            handler: None,
            fewest: 7,
            slot_ms: 100,
            preemptions: 5,
        }],
        batch: None,
    }
}

fn record(trials: Vec<Trial>) -> Record {
    let subjects = asked::<Psrw>(&[], Mode::Full).1;
    let rows = subjects.iter().filter_map(|subject| Row::new(subject.lock, subject.run, &trials)).collect();
    let mut record = Record::of(rows, trials);
    record.machine.load_average = [0.0; 3];
    record
}

/// Three rounds of `std-rw` with holds of 1 us and of 3 ms.
fn growing() -> Record {
    let trial = |(round, (hold_us, ticks)): (u32, (u32, u64))| Trial {
        round,
        locks: vec!["std-rw".into()],
        cell: Cell::Rw(Run::Invariance { hold_us, probe: readers::Probe::Urgent }),
        answer: Answer::Rw(outcome("urgent", ticks * u64::from(round + 1))),
    };
    let both = |round| [(1, 1000), (3000, 1_000_000)].map(|cell| (round, cell));
    record((0..3).flat_map(both).map(trial).collect())
}

#[test]
fn percentiles_are_medians_over_rounds_and_ends_are_of_all() {
    let record = growing();
    assert_eq!(record.rows.len(), 2);
    let times = record.rows[0].top().unwrap();
    assert_eq!((times.min, times.p50, times.p999, times.max), (250.0, 1000.0, 4000.0, 9000.0));
    assert_eq!((times.count, record.rows[0].rounds), (3000, 3));
    let role = &record.rows[0].roles[0];
    assert_eq!((role.per_s, role.shares, role.fewest, role.counted), (2000.0, 1.5, 7, 3000));
}

#[test]
fn a_property_is_a_table_and_a_plot() {
    let record = growing();
    let text = tables::all(&record);
    // 4000 ticks are 2 us; a thousand times that at the other end.
    let line = text.lines().find(|line| line.trim_start().starts_with("p99.9")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["p99.9", "2.00us", "2.00ms", "1000"]);
    let (_, plots) = page::plots(&record).unwrap();
    assert!(plots.concat().contains("us held by Bulk readers"), "{plots:?}");
    assert!(page::plots(&super::tests::record(Vec::new())).is_none());
}

#[test]
fn rows_are_those_that_belong() {
    let all = asked::<Psrw>(&[], Mode::Full).1;
    for Subject { lock, run } in &all {
        assert!(lock.handler || !run.has_handlers(), "{} of {}", run.name(), lock.name);
        assert!(lock.nested || *run != Run::Reader(Rank::Nested), "{}", lock.name);
    }
    // Every lock is there, and every run but those for which no lock has the class.
    assert!(Entry::all().iter().all(|lock| all.iter().any(|subject| subject.lock.name == lock.name)));
    let missing = runs().into_iter().filter(|run| !all.iter().any(|subject| subject.run == *run));
    let has_nested = Entry::all().iter().any(|lock| lock.nested);
    assert_eq!(missing.count(), usize::from(!has_nested));
    let (_, rows) = asked::<Psrw>(&["--only", "queue/urgent/8/p"], Mode::Quick);
    let names: Vec<String> = rows.iter().map(Subject::name).collect();
    let expected: &[&str] = if cfg!(target_env = "gnu") {
        &["parking_lot-rw", "pthread-rw", "pthread-rw-writer"]
    } else {
        &["parking_lot-rw", "pthread-rw"]
    };
    let peers: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_prefix("queue/urgent/8/"))
        .filter(|lock| !lock.starts_with("psrw"))
        .collect();
    assert_eq!(peers, expected);
}

#[test]
fn the_time_there_is_is_kept() {
    keeps_the_time::<Psrw>(10.0, 1);
}

#[test]
fn no_two_locks_look_alike_on_the_page() {
    let names: Vec<&str> = crate::subjects::rwlocks::Entry::all().iter().map(|entry| entry.name).collect();
    let looks = crate::report::looks(names.iter().copied());
    for of_scheme in
        [|look: &crate::report::Look| (look.0, look.1), |look: &crate::report::Look| (look.2, look.1)]
    {
        let distinct: std::collections::HashSet<_> = looks.iter().map(of_scheme).collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }
    assert!(names.len() > 5);
}
