//! Histories of semaphore arrays, on the virtual machine: some order of the steps of [`Sets`]
//! explains what every operation returned.
//!
//! A set that may wait is two operations of the history: it *comes*, when it is tried, proceeds or
//! falls asleep; and it *goes*, when it returns what has become of it. Both lie between its call
//! and its return, and others between the two: those that complete it, or pass it. So an order is
//! found only if every sleeper was completed, or refused, by the very step that the model
//! says, and in the right order.

use crate::sets::{Ended, Op, Outcome, Refusal, Sets, Waiters};
use crate::thread;
use std::collections::BTreeMap;
use std::sync::Arc;
use ulocks_core::model::linear::{Recorder, Specification};

/// What is called on an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A set that is not to wait.
    Try(Arc<[Op]>),
    /// The set of a thread comes, and may wait.
    Come(usize, Arc<[Op]>),
    /// And goes. If there is a reason, it may also have given up for it.
    Go(usize, Option<Refusal>),
    /// A semaphore gets a value.
    Set(usize, u32),
    /// All get values.
    SetAll(Vec<u32>),
    /// What a set did is given back.
    GiveBack(Arc<[Op]>),
    /// The array is closed.
    Close,
    /// The value of a semaphore.
    Value(usize),
    /// All values at one moment.
    Values,
    /// The threads that sleep at a semaphore.
    Waiters(usize),
}

/// What it returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Returned {
    /// Nothing of interest.
    Nothing,
    /// Of a set, or of values that were set.
    Outcome(Outcome),
    /// The value of a semaphore.
    Value(u32),
    /// All values.
    Values(Vec<u32>),
    /// The sleepers.
    Waiters(Waiters),
}

/// The history of an array in the making. Clones write the same one.
#[derive(Clone, Debug, Default)]
pub struct History(Recorder<Call, Returned>);

impl History {
    /// Nothing has happened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `apply`, which performs a set without waiting.
    pub fn tries(&self, ops: &[Op], apply: impl FnOnce() -> Outcome) -> Outcome {
        self.outcome(Call::Try(ops.into()), apply)
    }

    /// Runs `apply`, which performs a set, waits for it if need be, and may give up for the reason
    /// `gives_up`.
    pub fn waits(&self, ops: &[Op], gives_up: Option<Refusal>, apply: impl FnOnce() -> Outcome) -> Outcome {
        let me = thread::id();
        let comes = self.0.call(Call::Come(me, ops.into()));
        let goes = self.0.call(Call::Go(me, gives_up));
        let outcome = apply();
        comes.returned(Returned::Nothing);
        goes.returned(Returned::Outcome(outcome));
        outcome
    }

    /// Runs `set`, which gives a semaphore a value.
    pub fn sets(&self, index: usize, value: u32, set: impl FnOnce() -> Outcome) -> Outcome {
        self.outcome(Call::Set(index, value), set)
    }

    /// Runs `set_all`, which gives all semaphores values.
    pub fn sets_all(&self, values: &[u32], set_all: impl FnOnce() -> Outcome) -> Outcome {
        self.outcome(Call::SetAll(values.into()), set_all)
    }

    /// Runs `give_back`, which gives back what a set did.
    pub fn gives_back(&self, ops: &[Op], give_back: impl FnOnce()) {
        self.nothing(Call::GiveBack(ops.into()), give_back);
    }

    /// Runs `close`, which closes the array.
    pub fn closes(&self, close: impl FnOnce()) {
        self.nothing(Call::Close, close);
    }

    /// Runs `value`, which reads the value of a semaphore.
    pub fn reads(&self, index: usize, value: impl FnOnce() -> u32) {
        self.0.record(Call::Value(index), || Returned::Value(value()));
    }

    /// Runs `values`, which reads all values at one moment.
    pub fn reads_all(&self, values: impl FnOnce() -> Vec<u32>) {
        self.0.record(Call::Values, || Returned::Values(values()));
    }

    /// Runs `waiters`, which counts the sleepers of a semaphore.
    pub fn counts(&self, index: usize, waiters: impl FnOnce() -> Waiters) {
        self.0.record(Call::Waiters(index), || Returned::Waiters(waiters()));
    }

    /// Looks for an order that explains what was recorded, of an array that was `start` in the
    /// beginning.
    ///
    /// # Panics
    /// If there is none, with the history.
    pub fn check(&self, start: Sets) {
        self.0.check(&Start(start)).unwrap_or_else(|error| panic!("{error}"));
    }

    fn outcome(&self, call: Call, run: impl FnOnce() -> Outcome) -> Outcome {
        let mut outcome = Ok(());
        self.0.record(call, || {
            outcome = run();
            Returned::Outcome(outcome)
        });
        outcome
    }

    fn nothing(&self, call: Call, run: impl FnOnce()) {
        self.0.record(call, || {
            run();
            Returned::Nothing
        });
    }
}

/// The array at the start of a history.
struct Start(Sets);

/// An array between two operations, and the threads that have ended in it and not gone yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    sets: Sets,
    ended: BTreeMap<usize, Outcome>,
}

/// The number of a set that no thread waits for.
const NOBODY: usize = usize::MAX;

impl Specification for Start {
    type State = State;
    type Call = Call;
    type Return = Returned;

    fn start(&self) -> State {
        State { sets: self.0.clone(), ended: BTreeMap::new() }
    }

    fn outcomes(&self, state: &State, call: &Call) -> impl IntoIterator<Item = (State, Returned)> {
        outcome(state, call)
    }
}

/// What comes of a call, if it need not wait: there is no choice.
fn outcome(state: &State, call: &Call) -> Option<(State, Returned)> {
    let mut state = state.clone();
    let State { sets, ended } = &mut state;
    let completes = |result: Result<Ended, Refusal>, ended: &mut BTreeMap<_, _>| {
        Returned::Outcome(result.map(|completed| ended.extend(completed)))
    };
    let returned = match call {
        Call::Try(ops) => {
            ended.extend(sets.apply(NOBODY, ops, false));
            Returned::Outcome(ended.remove(&NOBODY)?)
        }
        Call::Come(who, ops) => {
            ended.extend(sets.apply(*who, ops, true));
            Returned::Nothing
        }
        Call::Go(who, gives_up) => {
            if let Some(refusal) = gives_up {
                ended.extend(sets.cancel(*who, *refusal));
            }
            Returned::Outcome(ended.remove(who)?)
        }
        Call::Set(index, value) => completes(sets.set(*index, *value), ended),
        Call::SetAll(values) => completes(sets.set_all(values), ended),
        Call::GiveBack(ops) => {
            ended.extend(sets.give_back(ops));
            Returned::Nothing
        }
        Call::Close => {
            ended.extend(sets.close());
            Returned::Nothing
        }
        Call::Value(index) => Returned::Value(sets.values()[*index]),
        Call::Values => Returned::Values(sets.values().to_vec()),
        Call::Waiters(index) => Returned::Waiters(sets.waiters()[*index]),
    };
    Some((state, returned))
}
