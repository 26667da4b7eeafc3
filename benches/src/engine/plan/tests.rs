use super::*;
use crate::engine::cell::Cell;
use crate::rows::{self, Wish, no_claims};
use crate::workloads::Scenario;
use std::collections::BTreeSet;

/// Two subjects that stay and two that may be dropped.
const SUBJECTS: [&str; 4] = ["unfair", "std", "usync", "pthread"];

const ROW: Row = Row {
    name: "hand-overs",
    about: "",
    share_s: (60, 10),
    jobs: |wish| {
        let job = |threads: u32| Job {
            cell: Cell {
                section: String::new(),
                label: format!("{threads} threads"),
                x: None,
                scenario: Scenario::Handoff,
            },
            subjects: SUBJECTS.map(Into::into).into(),
        };
        rows::thread_counts(wish).into_iter().map(job).collect()
    },
    drop_first: &["pthread", "usync"],
    columns: &[],
    claims: no_claims,
    sentences: |_| Vec::new(),
    notes: "",
};

fn wish(cpus: u32, mode: Mode) -> Wish {
    Wish { cpus, mode, ..Wish::default() }
}

fn options(mode: Mode) -> Options {
    Options { bench: true, quick: mode == Mode::Quick, ..Options::default() }
}

fn cells(jobs: &[Job]) -> BTreeSet<(String, String)> {
    jobs.iter().map(|job| (job.cell.section.clone(), job.cell.label.clone())).collect()
}

#[test]
fn no_core_count_is_ever_left_out() {
    for row in rows::ALL.iter().chain([&ROW]) {
        for (cpus, mode) in [2, 16, 64, 256].into_iter().flat_map(|n| [(n, Mode::Full), (n, Mode::Quick)]) {
            let jobs = (row.jobs)(&wish(cpus, mode));
            let order = plan(row, &options(mode), jobs.clone());
            assert_eq!(cells(&order.jobs), cells(&jobs), "{} on {cpus} CPUs", row.name);
            assert!(order.jobs.iter().all(|job| !job.subjects.is_empty()), "{}", row.name);
            assert!(jobs.is_empty() || order.rounds >= 3, "{} on {cpus} CPUs", row.name);
        }
    }
}

#[test]
fn every_row_keeps_its_time_on_two_cpus() {
    let (mut full_s, mut quick_s) = CRITERION_S;
    for row in rows::ALL {
        (full_s, quick_s) = (full_s + row.share_s.0, quick_s + row.share_s.1);
        for (mode, share_s) in [(Mode::Full, row.share_s.0), (Mode::Quick, row.share_s.1)] {
            let order = plan(row, &options(mode), (row.jobs)(&wish(2, mode)));
            assert!(order.takes_s() <= share_s as f64, "{} takes {} s", row.name, order.takes_s());
        }
    }
    assert!(full_s <= 15 * 60 && quick_s <= 4 * 60, "all rows take {full_s} s, and {quick_s} s");
}

#[test]
fn what_does_not_fit_goes_in_this_order_repeats_windows_peers() {
    let of = |share_s: u64, options: &Options| {
        let row = Row { share_s: (share_s, share_s), ..ROW };
        plan(&row, options, (row.jobs)(&wish(2, Mode::Full)))
    };
    let none = &options(Mode::Full);
    let plenty = of(10_000, none);
    assert_eq!((plenty.window_ms, plenty.rounds), (500, 13));
    assert!(plenty.left_out.is_empty() && plenty.limit == Some(Duration::from_secs(20_000)));
    let fewer = of(200, none);
    assert!(fewer.window_ms == 500 && (6..13).contains(&fewer.rounds), "{}", fewer.summary());
    let shorter = of(60, none);
    assert!((60..500).contains(&shorter.window_ms) && shorter.rounds == 6, "{}", shorter.summary());
    let least = of(10, none);
    assert!(least.window_ms == 60 && (3..6).contains(&least.rounds) && least.left_out.is_empty());
    let dropped = of(7, none);
    assert_eq!((dropped.window_ms, dropped.left_out.len()), (60, 1), "{}", dropped.summary());
    assert!(dropped.summary().contains("left out, to take no longer than 0:07 min: pthread"));
    let beyond = of(1, none);
    assert_eq!((beyond.window_ms, beyond.rounds), (60, 3));
    assert!(beyond.jobs.iter().all(|job| job.subjects == ["unfair", "std"]));
    assert!(beyond.summary().contains(", more than the 0:01 min meant for it"), "{}", beyond.summary());

    let full = of(1, &Options { full: true, ..none.clone() });
    assert_eq!((full.window_ms, full.rounds, full.limit), (500, 13, None));
    let given = of(1, &Options { seconds: Some(Duration::from_millis(7)), rounds: Some(2), ..none.clone() });
    assert_eq!((given.window_ms, given.rounds, given.jobs[0].subjects.len()), (7, 2, 4));
}

#[test]
fn a_round_is_every_trial_once_in_an_order_of_its_own() {
    let order = plan(&ROW, &options(Mode::Full), (ROW.jobs)(&wish(16, Mode::Full)));
    let (first, second) = (order.round(1), order.round(2));
    let all = |round: &[Turn]| round.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(first.len(), order.jobs.len() * SUBJECTS.len());
    assert!(first != second && all(&first) == all(&second) && all(&first).len() == first.len());
    assert_eq!(first, order.round(1));
}
