//! An array whose operations are recorded.

use crate::convert::{outcome, set};
use core::time::Duration;
use ulocks_core::model::linear::{Recorder, Specification};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::AcqRel;
use ulocks_core::sync::spin_until;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Fairness, RawSemArray, Wait, groups};
use ulocks_testkit::model::sets::History;
use ulocks_testkit::sets::{self, Action, Outcome, Refusal, Sets, Waiters};
use ulocks_testkit::thread::Arc;

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
pub type Array = RawSemArray;

/// Until a deadline that may pass at any time.
pub fn soon() -> Wait {
    Wait::Until(Some(Deadline::after(Duration::from_millis(1))))
}

/// What an array with aged sets promises about the order of sets. It performs a set at one moment,
/// on the values that there are. It may refuse a set that would have to wait, if another is in the
/// way.
#[derive(Clone)]
struct Values {
    start: Vec<u32>,
    limit: u32,
}

#[derive(Clone, Debug)]
enum Done {
    Set(Vec<sets::Op>),
    Undone(Vec<sets::Op>),
}

impl Specification for Values {
    type State = Vec<u32>;
    type Call = Done;
    type Return = Outcome;

    fn start(&self) -> Vec<u32> {
        self.start.clone()
    }

    fn outcomes(&self, values: &Vec<u32>, call: &Done) -> impl IntoIterator<Item = (Vec<u32>, Outcome)> {
        let mut sets = Sets::new(values.clone(), self.limit);
        let outcome = match call {
            Done::Set(ops) => sets.apply(0, ops, false)[0].1,
            Done::Undone(ops) => {
                sets.give_back(ops);
                Ok(())
            }
        };
        let refusals = [Refusal::WouldBlock, Refusal::TimedOut].map(|refusal| (values.clone(), Err(refusal)));
        let decided = matches!(outcome, Ok(()) | Err(Refusal::OutOfRange(_)));
        decided.then(|| (sets.values().to_vec(), outcome)).into_iter().chain(refusals)
    }
}

/// An array, and the history of what is done to it.
pub struct Recorded {
    array: Array,
    start: Sets,
    history: History,
    /// The history, as far as an array with aged sets is concerned.
    done: Recorder<Done, Outcome>,
    values: Values,
    /// Orders the events of the history in the program, too. Without it, a thread need not see what
    /// another did before, because nothing orders the two.
    wall_clock: AtomicU32,
}

impl Recorded {
    pub fn new(values: &[u32], limit: u32, fairness: Fairness) -> Arc<Self> {
        assert_eq!(groups::claimed(), 0, "a seat was left behind");
        Arc::new(Self {
            array: Array::new(values, limit, 500, fairness),
            start: Sets::new(values, limit),
            history: History::new(),
            done: Recorder::new(),
            values: Values { start: values.to_vec(), limit },
            wall_clock: AtomicU32::new(0),
        })
    }

    pub fn array(&self) -> &Array {
        &self.array
    }

    fn has_aged(&self) -> bool {
        self.array.fairness() != Fairness::Barging
    }

    fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        self.wall_clock.fetch_add(1, AcqRel);
        let returned = call();
        self.wall_clock.fetch_add(1, AcqRel);
        returned
    }

    pub fn applies(&self, ops: &[sets::Op], wait: Wait) -> Outcome {
        let set = set(ops);
        if self.has_aged() {
            let apply = || self.during(|| outcome(self.array.apply(&set, wait)));
            return self.done.record(Done::Set(ops.to_vec()), apply);
        }
        let apply = || self.during(|| outcome(self.array.apply(&set, wait)));
        match wait {
            Wait::No => self.history.tries(ops, apply),
            Wait::Until(None) => self.history.waits(ops, None, apply),
            _ => self.history.waits(ops, Some(Refusal::TimedOut), apply),
        }
    }

    /// The opposite set, which never has to wait.
    pub fn undoes(&self, ops: &[sets::Op]) {
        let opposite = |op: &sets::Op| match op.action {
            Action::Add(amount) => sets::sub(op.index, amount),
            Action::Sub(amount) => sets::add(op.index, amount),
            Action::WaitZero => sets::add(op.index, 0),
        };
        let ops: Vec<_> = ops.iter().rev().map(opposite).collect();
        self.applies(&ops, Wait::No).expect("it was done before");
    }

    pub fn gives_back(&self, ops: &[sets::Op]) {
        let set = set(ops);
        if self.has_aged() {
            let give_back = || outcome(self.during(|| self.array.give_back(&set)));
            assert_eq!(self.done.record(Done::Undone(ops.to_vec()), give_back), Ok(()));
            return;
        }
        // A closed array takes nothing back.
        self.history.gives_back(ops, || self.during(|| _ = self.array.give_back(&set)));
    }

    pub fn sets(&self, index: usize, value: u32) {
        _ = self.history.sets(index, value, || self.during(|| outcome(self.array.set(index, value))));
    }

    pub fn closes(&self) {
        self.history.closes(|| self.during(|| self.array.close()));
    }

    pub fn reads(&self) {
        self.history.reads_all(|| self.during(|| self.array.values()));
    }

    pub fn counts(&self, index: usize) {
        self.history.counts(index, || {
            let waiters = self.during(|| self.array.waiters(index)).expect("there is such a semaphore");
            Waiters { increase: waiters.increase, zero: waiters.zero }
        });
    }

    /// Returns when this is how many sets sleep at semaphore `index`: until it grows, and until it
    /// is zero.
    pub fn until(&self, index: usize, increase: usize, zero: usize) {
        spin_until(|| {
            let waiters = self.array.waiters(index).expect("there is such a semaphore");
            (waiters.increase, waiters.zero) == (increase, zero)
        });
        // So that the history says that these sets have come.
        self.counts(index);
    }

    /// All threads have gone, and left nothing behind.
    pub fn check_at_rest(&self) {
        assert!(self.array.is_at_rest(), "something was left behind");
        assert_eq!(groups::claimed(), 0, "a seat was left behind");
    }

    /// Some order explains what was recorded.
    pub fn check_history(&self) {
        self.done.check(&self.values).unwrap_or_else(|error| panic!("{error}"));
        self.history.check(self.start.clone());
    }
}
