use super::*;
use crate::run::child::Task;
use crate::subjects::semaphores::arrays::{Array, Kernel, Ours, Posix, Singles};
use crate::subjects::semaphores::{Entry, KERNEL, Made, POSIX, SEMARRAY};
use crate::workloads::Scenario as _;
use crate::workloads::figure::Figure;
use crate::workloads::uncontended::PairsSpec;
use crate::workloads::uncontended_sets::Sets;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_semarray::Fairness;

pub(super) fn spec(subject: &str, run: Run) -> Spec {
    Spec { subject: subject.into(), run, warmup_ms: 2, window_ms: 20, iterations_per_us: 100.0, seed: 7 }
}

fn runs() -> Vec<Run> {
    let wakes = Order::ALL.map(|order| Run::Wakes { threads: 260, wakes: 100, order });
    let own = [false, true].map(|poster| Run::Own { threads: 2, poster });
    let others = [
        Run::PingPong { pairs: 2 },
        Run::Complex { threads: 3 },
        Run::Readers { threads: 3, reads: 50 },
        Run::Philosophers { seats: 5 },
        Run::Manager { workers: 4, hold_us: 0 },
    ];
    wakes.into_iter().chain(own).chain(others).collect()
}

#[test]
fn all_that_belong_to_a_run_carry_it_out() {
    for run in runs() {
        assert!(Entry::all().iter().filter(|entry| run.admits(entry)).count() > 1, "{run}");
        for entry in Entry::all().iter().filter(|entry| run.admits(entry)) {
            let outcome =
                spec(entry.name, run).carry_out().unwrap_or_else(|e| panic!("{}: {e:#}", entry.name));
            let beside = matches!(run, Run::Manager { .. } | Run::Own { poster: true, .. });
            assert_eq!(outcome.beside.len(), usize::from(beside), "{} {run}", entry.name);
            assert_eq!(outcome.counts.len() + usize::from(beside), run.threads() as usize);
            assert!(
                outcome.ops > 0 && outcome.elapsed_s >= 0.02 && outcome.cpu_s > 0.0,
                "{} {run}",
                entry.name
            );
            let per_s = outcome.ops as f64 / outcome.elapsed_s;
            assert_eq!(outcome.figure(Figure::PerSecond), Some(per_s));
            assert_eq!(outcome.figure(Figure::Share).is_some(), beside);
        }
    }
}

#[test]
fn posts_go_in_sets_or_one_by_one() {
    let run = Run::Wakes { threads: 64, wakes: 64, order: Order::Fifo };
    for entry in Entry::all().iter().filter(|entry| run.admits(entry) && entry.made_of == Made::Kernel) {
        let outcome = spec(entry.name, run).carry_out().unwrap();
        let (calls, posts) = (outcome.calls.unwrap(), outcome.ops);
        assert!(if entry.one_by_one { calls == posts } else { calls < posts }, "{}: {outcome:?}", entry.name);
    }
}

#[test]
fn what_takes_no_part_is_refused() {
    let error = spec(POSIX, Run::Manager { workers: 2, hold_us: 0 }).carry_out().unwrap_err().to_string();
    assert!(
        error.starts_with("'sem_t' takes no part in a run of this kind, manager/2/0us; allowed: sysv, "),
        "{error}"
    );
    let error = spec("mutex", Run::Own { threads: 1, poster: false }).carry_out().unwrap_err().to_string();
    assert!(error.starts_with("unknown semaphores 'mutex'; allowed: sysv, "), "{error}");
}

#[test]
fn sets_of_all_sizes_have_a_figure() {
    for (ops, subjects) in
        [(1, vec![SEMARRAY, KERNEL, POSIX]), (8, vec![SEMARRAY, KERNEL]), (500, vec![KERNEL])]
    {
        let subjects: Vec<String> = subjects.into_iter().map(str::to_owned).collect();
        let result =
            PairsSpec { subjects: subjects.clone(), pairs: Sets { ops, one_by_one: false }, window_ms: 1 }
                .carry_out()
                .unwrap();
        assert!(
            result.ns.len() == subjects.len() && result.ns.iter().all(|&ns| ns > 0.0),
            "{ops}: {result:?}"
        );
    }
    let refused = PairsSpec {
        subjects: vec![KERNEL.into()],
        pairs: Sets { ops: 501, one_by_one: false },
        window_ms: 1,
    }
    .carry_out();
    assert_eq!(refused.unwrap_err().to_string(), "sets of 501; allowed: 1 to 500 operations");
    let refused =
        PairsSpec { subjects: vec![POSIX.into()], pairs: Sets { ops: 2, one_by_one: false }, window_ms: 1 }
            .carry_out();
    assert_eq!(refused.unwrap_err().to_string(), "'sem_t' does not take sets");
}

/// What all arrays have in common.
fn behaves<A: Array>(array: &A) {
    array.apply(&[A::sub(0, 1), A::add_at_once(2, 3), A::wait_zero(1)]);
    assert_eq!(Array::values(array).unwrap(), [1, 0, 3]);
    array.down(2);
    array.up(1);
    array.poster(0..3)();
    assert_eq!(Array::values(array).unwrap(), [1, 1, 2]);
}

#[test]
fn arrays_do_what_they_are_told() {
    let values = [2, 0, 0];
    behaves(&Kernel::new(&values).unwrap());
    behaves(&Ours::new(&values, Fairness::Barging).unwrap());
    let posix = Posix::new(&values).unwrap();
    posix.down(0);
    posix.up(2);
    posix.poster(0..3)();
    assert_eq!(posix.values().unwrap(), [1, 0, 1]);
}

#[test]
fn the_kernels_arrays_are_removed_also_by_a_panic() {
    let exists = |id| {
        // SAFETY: no pointers are involved.
        unsafe { libc::semctl(id, 0, libc::GETVAL) >= 0 }
    };
    let mut id = -1;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let set = crate::subjects::semaphores::kernel_set::SemSet::new(&[0; 250]).unwrap();
        id = set.id();
        assert!(exists(id));
        panic!("on purpose");
    }));
    assert!(panicked.is_err() && id >= 0 && !exists(id));
    assert!(crate::subjects::semaphores::kernel_set::SemSet::new(&[70_000]).is_err());
}

/// An array that lets every thread through.
pub(super) struct Open;

impl Array for Open {
    type Op = ();
    fn add(_: usize, _: u32) {}
    fn add_at_once(_: usize, _: u32) {}
    fn sub(_: usize, _: u32) {}
    fn wait_zero(_: usize) {}
    fn apply(&self, _: &[()]) {
        std::thread::yield_now();
    }
    fn values(&self) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }
}
