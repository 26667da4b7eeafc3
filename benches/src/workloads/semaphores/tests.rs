use super::*;
use crate::subjects::semaphores::arrays::{Kernel, Ours, Posix};
use crate::subjects::semaphores::{Array, KERNEL, POSIX, ROBUST_SET, SEMARRAY, Traits, UNDO, made};
use crate::workloads::sets::Sets;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn conditions() -> Conditions {
    Conditions { warmup_ms: 2, window_ms: 20, iterations_per_us: 100.0, seed: 7, pin: Pin::Scatter }
}

const SMALL: Run = Run::Wakes { workers: Workers::Threads(4), wakes: 4, order: Order::Fifo };
const PROCESSES: Run = Run::Wakes { workers: Workers::Processes(8), wakes: 4, order: Order::Fifo };

fn runs() -> Vec<Run> {
    let wakes = [Order::Fifo, Order::Lifo, Order::Random];
    let wakes = wakes.map(|order| Run::Wakes { workers: Workers::Threads(260), wakes: 100, order });
    let own = [false, true].map(|poster| Run::Own { threads: 2, poster });
    let others = [PROCESSES, Run::Manager { workers: 4, hold_us: 0 }];
    wakes.into_iter().chain(own).chain(others).collect()
}

#[test]
fn all_that_belong_to_a_run_carry_it_out() {
    for run in runs() {
        assert!(Entry::all().iter().filter(|entry| run.admits(entry)).count() > 1, "{run:?}");
        for entry in Entry::all().iter().filter(|entry| run.admits(entry)) {
            let outcome = run.carry_out(entry.name, &conditions());
            let outcome = outcome.unwrap_or_else(|error| panic!("{} {run:?}: {error:#}", entry.name));
            assert!(outcome["rate"] > 0.0 && outcome["cov"] >= 0.0, "{} {run:?}: {outcome:?}", entry.name);
            // Of other processes neither is known.
            let known = outcome.contains_key("futexes") || outcome.contains_key("switches");
            assert_eq!(known, run != PROCESSES, "{} {run:?}: {outcome:?}", entry.name);
            let beside = matches!(run, Run::Manager { .. } | Run::Own { poster: true, .. });
            assert_eq!(outcome.contains_key("share"), beside, "{} {run:?}", entry.name);
            // How many, by the arrivals of the same window, depends on where its edges fall. That
            // posts go in sets or one by one is for `arrays_do_what_they_are_told`.
            if entry.in_kernel && matches!(run, Run::Wakes { workers: Workers::Threads(_), .. }) {
                assert!(outcome["calls"] > 0.0, "{} {run:?}: {outcome:?}", entry.name);
            }
        }
    }
}

#[test]
fn what_takes_no_part_is_refused() {
    let refused = |run: Run, name: &str| run.carry_out(name, &conditions()).unwrap_err().to_string();
    let error = refused(Run::Manager { workers: 2, hold_us: 0 }, POSIX);
    assert!(error.starts_with("'sem_t' takes no part in a run of this kind; allowed: sysv, "), "{error}");
    assert!(refused(SMALL, "mutex").starts_with("unknown semaphores 'mutex'; allowed: sysv, "));
    let nobody = Run::Wakes { workers: Workers::Threads(0), wakes: 1, order: Order::Fifo };
    assert!(refused(nobody, KERNEL).ends_with("; allowed: at least 1 of each"));
}

#[test]
fn sets_of_all_sizes_have_a_figure() {
    let run = |ops, subjects: &[&str]| {
        let subjects: Vec<String> = subjects.iter().map(|&name| name.into()).collect();
        Sets { ops, one_by_one: false }.carry_out(&subjects, &Conditions { window_ms: 1, ..conditions() })
    };
    for (ops, subjects) in [
        (1, &[SEMARRAY, KERNEL, POSIX, "floor"][..]),
        (2, &[UNDO, ROBUST_SET]),
        (8, &[SEMARRAY, KERNEL, "floor"]),
        (500, &[KERNEL]),
    ] {
        let outcomes = run(ops, subjects).unwrap();
        assert!(outcomes.len() == subjects.len() && outcomes.iter().all(|outcome| outcome["pair"] > 0.0));
    }
    assert_eq!(run(501, &[KERNEL]).unwrap_err().to_string(), "sets of 501; allowed: 1 to 500 operations");
    assert_eq!(run(2, &[POSIX]).unwrap_err().to_string(), "'sem_t' does not take sets");
}

#[test]
fn arrays_do_what_they_are_told() {
    fn behaves<A: Array>(array: A) {
        let array = made(Ok(array)).unwrap();
        array.set(&[Op::sub(0, 1), Op::add(2, 3).no_wait(), Op::wait_zero(1)])();
        assert_eq!(array.values(), [1, 0, 3]);
        assert_eq!((array.poster(2)(&[0, 1, 2]), array.poster(1)(&[1])), (2, 1));
        assert_eq!(array.values(), [2, 2, 4]);
    }
    behaves(Kernel::new(&[2, 0, 0]).unwrap());
    behaves(Kernel::undo(&[2, 0, 0]).unwrap());
    behaves(Ours::new(&[2, 0, 0]).unwrap());
    let posix = Posix::new(&[2, 0, 0]).unwrap();
    posix.apply(&[Op::sub(0, 1), Op::add(2, 1)]);
    assert_eq!(Array::values(&posix), [1, 0, 1]);
}

#[test]
fn the_kernels_arrays_are_removed_also_by_a_panic() {
    use crate::subjects::semaphores::kernel_set::SemSet;
    // SAFETY: no pointers are involved.
    let exists = |id| unsafe { libc::semctl(id, 0, libc::GETVAL) >= 0 };
    let mut id = -1;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let set = SemSet::new(&[0; 250]).unwrap();
        id = set.id();
        assert!(exists(id));
        panic!("on purpose");
    }));
    assert!(panicked.is_err() && id >= 0 && !exists(id));
    assert!(SemSet::new(&[70_000]).is_err());
}

/// Lets each thread through.
struct Open;

impl Array for Open {
    type Op = Op;

    fn apply(&self, _: &[Op]) {
        std::thread::yield_now();
    }

    fn values(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[test]
fn what_does_not_exclude_or_wait_is_found_out() {
    let kind = Traits { make: |_, _| made(Ok(Open)), parts: &[], per_call: 1, in_kernel: false };
    let entry = Entry { name: "open", about: "", family: false, kind };
    let error = SMALL.carry_out_on(&entry, &conditions(), GRACE).unwrap_err().to_string();
    assert!(
        error.starts_with("'open': workers came back ") && error.ends_with("not been posted to"),
        "{error}"
    );

    let run = Run::Manager { workers: 2, hold_us: 0 };
    let job = Job::new(run, Entry::find(KERNEL).unwrap(), &conditions()).unwrap();
    let checked = || {
        let seen = Seen { turns: vec![0, 0, 1], ..Seen::default() };
        job.check("'open'", &seen).map_err(|error| error.to_string())
    };
    job.taken[0].store(1, Relaxed);
    assert_eq!(checked().unwrap_err(), "'open': lost updates: 2 turns, but the counters say 1");
    job.taken[1].store(1, Relaxed);
    assert_eq!(checked(), Ok(()));
    job.semaphores.set(&[Op::sub(1, 1)])();
    assert_eq!(checked().unwrap_err(), "'open' was not left as it was found: [1, 0]");
}
