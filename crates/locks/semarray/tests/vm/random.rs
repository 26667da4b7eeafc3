//! Random sets of many threads on a few semaphores: whatever they do, and whenever, an order of the
//! steps of the sequential model explains it.

use crate::convert::set;
use crate::random_recorded::{Recorded, soon};
use core::time::Duration;
use ulocks_core::model::{Config, choose, explore};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, SemArray, Wait};
use ulocks_testkit::sets::{Op, Sets, add, sub, wait_zero};
use ulocks_testkit::thread::{Arc, together};

const THREADS: usize = 8;
const SEMAPHORES: usize = 4;
/// So small that additions run into it.
const LIMIT: u32 = 3;

/// Semaphores of which threads take, and then semaphores at which they make themselves known.
const AT_REST: [u32; SEMAPHORES] = [2, 1, 0, 0];

/// One to three operations.
fn set_of(op: impl Fn() -> Op) -> Vec<Op> {
    (0..=choose(3)).map(|_| if choose(8) == 7 { op().no_wait() } else { op() }).collect()
}

/// Takes some of what there is, or enters where no thread may be, and goes back in another way.
fn loan() -> Op {
    match choose(SEMAPHORES) {
        index @ (0 | 1) => sub(index, 1 + choose(2) as u32),
        index if choose(2) == 0 => add(index, 1),
        index => wait_zero(index),
    }
}

fn any() -> Op {
    let (index, amount) = (choose(SEMAPHORES), 1 + choose(2) as u32);
    match choose(3) {
        0 => sub(index, amount),
        1 => add(index, amount),
        _ => wait_zero(index),
    }
}

/// Each thread borrows, waiting as long as it takes, and gives back what it got. No thread asks for
/// more while it has something. When all of it is given back, every set can proceed that waits
/// without a deadline. So all threads come to their end.
fn lenders(fairness: Fairness, rounds: usize) {
    let shared = Recorded::new(&AT_REST, LIMIT, fairness);
    let recorded = Arc::clone(&shared);
    together(THREADS, move |_| {
        for _ in 0..rounds {
            let ops = set_of(loan);
            let is_possible = Sets::new(AT_REST, LIMIT).apply(0, &ops, false)[0].1.is_ok();
            let wait = match choose(4) {
                0 => Wait::No,
                1 => soon(),
                _ if is_possible => Wait::Until(None),
                _ => soon(),
            };
            if recorded.applies(&ops, wait).is_ok() {
                match choose(3) {
                    0 => recorded.gives_back(&ops),
                    _ => recorded.undoes(&ops),
                }
            }
        }
    });
    assert_eq!(shared.array().values(), AT_REST, "something was lost, or found");
    shared.check_at_rest();
    shared.check_history();
}

/// Each thread performs any sets, and stops waiting at some time. One of them may close the array.
fn strangers(rounds: usize) {
    let shared = Recorded::new(&[1, 0, 2, 0], LIMIT, Fairness::Barging);
    let recorded = Arc::clone(&shared);
    together(THREADS, move |me| {
        for _ in 0..rounds {
            match choose(12) {
                0 => recorded.counts(choose(SEMAPHORES)),
                1 => recorded.reads(),
                2 => recorded.sets(choose(SEMAPHORES), choose(LIMIT as usize + 1) as u32),
                3 => recorded.gives_back(&set_of(any)),
                4 | 5 => drop(recorded.applies(&set_of(any), Wait::No)),
                _ => drop(recorded.applies(&set_of(any), soon())),
            }
        }
        if me == 0 && choose(2) == 1 {
            recorded.closes();
        }
    });
    shared.reads();
    shared.check_at_rest();
    shared.check_history();
}

fn sampled(executions: u64, seed: u64) -> Config {
    Config { spurious: 2, seed, max_steps: 100_000, ..Config::sampled(executions) }
}

/// The same by permits, of which some are never given back.
fn permits() {
    let array = Arc::new(SemArray::with_values(AT_REST));
    let shared = Arc::clone(&array);
    let kept: Vec<Vec<Op>> = together(4, move |_| {
        let ops = set_of(loan);
        let deadline = Deadline::after(Duration::from_millis(1));
        match shared.acquire_until(set(&ops), deadline) {
            Ok(permit) if choose(4) == 0 => {
                permit.forget();
                ops
            }
            Ok(permit) => {
                assert_eq!(permit.ops().len(), ops.len());
                Vec::new()
            }
            Err(error) => {
                assert!(matches!(error, Error::TimedOut | Error::WouldBlock), "{error}");
                Vec::new()
            }
        }
    });
    let mut values = AT_REST.map(i64::from);
    kept.iter().flatten().for_each(|op| values[op.index] += op.change());
    assert_eq!(array.values().into_iter().map(i64::from).collect::<Vec<_>>(), values);
    assert!(array.raw().is_at_rest(), "something was left behind");
}

#[test]
fn lenders_are_explained() {
    explore(sampled(1_200, 1), || lenders(Fairness::Barging, 1));
    explore(sampled(100, 2), || lenders(Fairness::Barging, 2));
}

#[test]
fn strangers_are_explained() {
    explore(sampled(2_000, 1), || strangers(2));
}

#[test]
fn lenders_with_aged_sets_are_explained() {
    for after in [Duration::ZERO, Duration::from_millis(1)] {
        explore(sampled(1_500, 1), move || lenders(Fairness::Strict { after }, 2));
    }
}

#[test]
fn permits_are_given_back() {
    explore(sampled(2_000, 1), permits);
}
