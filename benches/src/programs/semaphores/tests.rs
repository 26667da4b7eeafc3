use super::row::{fifo, peers};
use super::*;
use crate::programs::harness::{Subject as _, keeps_the_time};
use crate::subjects::semaphores::{Entry, FUTEX, KERNEL, SEMARRAY};
use crate::workloads::cell::{Answer, Trial};
use crate::workloads::semaphores::{Order, Outcome};
use std::collections::HashSet;

const FIFO: Run = Run::Wakes { threads: 8, wakes: 4, order: Order::Fifo };
const LIFO: Run = Run::Wakes { threads: 8, wakes: 4, order: Order::Lifo };

/// A trial in which there were so many posts in a second, half as many system calls, and 2 s of CPU
/// time.
fn trial(round: u32, name: &str, run: Run, ops: u64) -> Trial {
    let outcome = Outcome {
        elapsed_s: 1.0,
        cpu_s: 2.0,
        ops,
        counts: vec![ops / 2, ops / 2],
        beside: matches!(run, Run::Manager { .. }).then_some(ops / 8).into_iter().collect(),
        calls: Some(ops / 2),
    };
    Trial { round, locks: vec![name.into()], cell: Cell::Sem(run), answer: Answer::Sem(outcome) }
}

#[test]
fn a_row_is_what_its_trials_come_to() {
    let trials: Vec<Trial> = (0..3)
        .flat_map(|round| {
            [
                trial(round, SEMARRAY, FIFO, 3000),
                trial(round, SEMARRAY, LIFO, 2400),
                trial(round, KERNEL, LIFO, 2000),
                trial(round, FUTEX, LIFO, 1000),
            ]
        })
        .collect();
    let subject = Subject { entry: Entry::find(SEMARRAY).unwrap(), run: LIFO };
    let row = Row::new(&subject, &trials).unwrap();
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    let ratio = |peer| row.by(peer).unwrap().value;
    assert!(near(row.per_s.value, 2400.0) && near(ratio(KERNEL), 1.2) && near(ratio(FUTEX), 2.4), "{row:?}");
    assert!(near(row.by_fifo.as_ref().unwrap().value, 0.8));
    assert!(near(row.cpu_ns, 2e9 / 2400.0) && row.calls == Some(0.5) && row.cov == 0.0, "{row:?}");
    assert!(row.share.is_none() && row.beside_per_s.is_none() && row.name == "8/4/lifo/semarray");

    let run = Run::Manager { workers: 2, hold_us: 0 };
    let subject = Subject { entry: Entry::find(KERNEL).unwrap(), run };
    let row = Row::new(&subject, &[trial(0, KERNEL, run, 800)]).unwrap();
    // 100 turns of the manager by 400 of each worker.
    assert_eq!((row.share.unwrap().value, row.beside_per_s), (0.25, Some(100.0)));
    assert!(row.by.is_empty() && Row::new(&subject, &[]).is_none());
}

#[test]
fn a_part_of_the_table_keeps_what_ratios_are_taken_to() {
    let subjects = [Subject { entry: Entry::find(SEMARRAY).unwrap(), run: LIFO }];
    let (probes, _) = trials(&subjects);
    let has = |run, name: &str| probes.iter().any(|p| p.cell == Cell::Sem(run) && p.locks == [name]);
    assert!(has(LIFO, SEMARRAY) && has(LIFO, KERNEL) && has(LIFO, FUTEX) && has(FIFO, SEMARRAY));
    assert_eq!(probes.len(), 4);
}

#[test]
fn names_are_unique_and_peers_take_part() {
    for cpus in [1, 2, 64] {
        let runs = semscale::runs(cpus);
        let subjects = Subject::of(&runs);
        let names: HashSet<String> = subjects.iter().map(Subject::name).collect();
        assert_eq!(names.len(), subjects.len());
        for run in runs.into_iter().chain([FIFO, LIFO]) {
            assert!(peers(run).iter().all(|peer| run.admits(Entry::find(peer).unwrap())), "{run}");
        }
    }
    assert_eq!((fifo(LIFO), fifo(FIFO)), (Some(FIFO), None));
    assert_eq!(semscale::counts(2), [1, 2, 4, 8]);
    assert_eq!(semscale::counts(24), [1, 2, 4, 8, 16, 32]);
}

#[test]
fn the_time_there_is_is_kept() {
    keeps_the_time::<sembench::Sembench>(5.0, 1);
    keeps_the_time::<semscale::Semscale>(5.0, 1);
}
