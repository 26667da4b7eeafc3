//! The explorer's own correctness: what it shows of small models is compared with what is stated
//! here by hand, by all their executions where there are few enough.
//!
//! The outcomes of the executions are collected outside of the model, in a plain set: all threads
//! of the machine run on one thread of the system.

#![allow(clippy::undocumented_unsafe_blocks, reason = "cells of models; their accesses are what is tested")]

mod barrier;
mod bounds;
mod coverage;
#[cfg(feature = "linux")]
mod crash;
mod futex;
mod locks;
mod optimal;
mod pages;
mod panics;
mod parallel;
#[cfg(feature = "linux")]
mod processes;
mod replay;
#[cfg(feature = "linux")]
mod robust;
#[cfg(feature = "linux")]
mod signals;
mod spin;
mod stories;
mod time;
mod verdicts;
mod watch;
mod words;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use ulocks_vm::explore::{Config, Failure, Verdict, explore, run};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::thread::{self, JoinHandle};

/// The outcomes of all executions of `model` that `config` asks for.
#[track_caller]
fn outcomes<T: Ord + 'static>(config: Config, model: impl Fn() -> T + 'static) -> BTreeSet<T> {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&seen);
    explore(config, move || {
        let outcome = model();
        into.borrow_mut().insert(outcome);
    });
    seen.take()
}

/// That the outcomes of all executions of `model` are `expected`, each of them.
#[track_caller]
fn all_outcomes<T: Ord + Debug + 'static, const N: usize>(model: impl Fn() -> T + 'static, expected: [T; N]) {
    assert_eq!(outcomes(Config::exhaustive(), model), BTreeSet::from(expected));
}

/// As [`all_outcomes`], with another configuration.
#[track_caller]
fn all_outcomes_of<T: Ord + Debug + 'static, const N: usize>(
    config: Config,
    model: impl Fn() -> T + 'static,
    expected: [T; N],
) {
    assert_eq!(outcomes(config, model), BTreeSet::from(expected));
}

/// The failure that exploring `model` ends with.
#[track_caller]
fn failure(config: &Config, model: impl Fn() + 'static) -> Failure {
    match run(config, model) {
        Ok(report) => panic!("nothing went wrong: {report} ({config})"),
        Err(failure) => *failure,
    }
}

/// The verdict of the failure that exploring all executions of `model` ends with.
#[track_caller]
fn verdict(model: impl Fn() + 'static) -> Verdict {
    failure(&Config::exhaustive(), model).verdict
}

/// Runs `body` in a thread of its own, on what the threads share.
#[track_caller]
fn with<T: ?Sized + Send + Sync + 'static, R: Send + 'static>(
    shared: &Arc<T>,
    body: impl FnOnce(&T) -> R + Send + 'static,
) -> JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || body(&shared))
}

/// What threads share.
struct Shared<S>(S);

/// Has threads share `state`. A story would call its words by the field of a literal.
fn shared<S>(state: S) -> Shared<S> {
    Shared(state)
}

impl<S: Send + Sync + 'static> Shared<S> {
    /// Runs each of `bodies` in a thread of its own, and returns what they returned.
    fn threads<R: Send + 'static, const N: usize>(self, bodies: [fn(&S) -> R; N]) -> [R; N] {
        let state = Arc::new(self.0);
        bodies.map(|body| with(&state, body)).map(|thread| thread.join().expect("nobody dies"))
    }
}

/// The address of a word.
fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

/// For answers that a model does not look at.
fn discard<T>(_: T) {}
