//! Loops that wait without `spin_until`, as people write them. Each completes, and each with a bug
//! is found out.

#![allow(clippy::duplicate_mod, reason = "the locks of `examples/compare` are in three worlds")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "cells of models; their accesses are what is tested")]

mod bounded;
mod fair;
mod locks;
mod signals;
mod sleeping;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use ulocks_vm::explore::{Config, run};
use ulocks_vm::sync::UnsafeCell;
use ulocks_vm::thread;

/// Data that a lock protects, or a flag publishes.
#[derive(Default)]
struct Data(UnsafeCell<u32>);

// SAFETY: the machine reports a race on it.
unsafe impl Sync for Data {}

impl Data {
    fn add(&self) {
        // SAFETY: no other thread of the machine runs now.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|data| unsafe { *data })
    }
}

/// Most executions that one of these models may take; they take hundreds.
const ENOUGH: u64 = 2_000_000;

fn exhaustive() -> Config {
    Config { executions: ENOUGH, max_steps: 2_000, ..Config::exhaustive() }
}

/// That all executions of `model` were tried, and are right. How many there were.
#[track_caller]
fn completes(model: impl Fn() + 'static) -> u64 {
    let report = run(&exhaustive(), model).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.finished, "{report}");
    println!("{}: {report}", std::panic::Location::caller());
    report.executions
}

/// That `model` goes wrong in this way, among all executions and by chance.
#[track_caller]
fn fails(kind: &str, model: impl Fn() + Clone + 'static) {
    for config in [exhaustive(), Config::sampled(20_000)] {
        let failure = match run(&config, model.clone()) {
            Ok(report) => panic!("nothing went wrong: {report} ({config})"),
            Err(failure) => failure,
        };
        assert_eq!(failure.verdict.kind(), kind, "{failure}");
        println!("{}: {kind} at {}", std::panic::Location::caller(), failure.execution);
        let again = Config::replaying(Config { shrink: 0, ..config }, &failure.replay);
        assert_eq!(run(&again, model.clone()).unwrap_err().verdict.kind(), kind);
    }
}

/// What `model` comes to in all executions.
#[track_caller]
fn outcomes<T: Ord + 'static>(model: impl Fn() -> T + 'static) -> BTreeSet<T> {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&seen);
    completes(move || {
        let outcome = model();
        into.borrow_mut().insert(outcome);
    });
    seen.take()
}

/// Runs `body` in so many threads, each of which is given its number from 0 on.
fn each<S: Send + Sync + 'static, R: Send + 'static>(
    count: usize,
    state: S,
    body: impl Fn(&S, usize) -> R + Send + Copy + 'static,
) -> (Vec<R>, Arc<S>) {
    let state = Arc::new(state);
    let start = |me| {
        let state = Arc::clone(&state);
        thread::spawn(move || body(&state, me))
    };
    let started: Vec<_> = (0..count).map(start).collect();
    (started.into_iter().map(|thread| thread.join().expect("nobody dies")).collect(), state)
}
