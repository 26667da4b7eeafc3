//! The arrays of this crate.

use crate::crew::{Patience, Subject};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, Op, RawSemArray, Set, Wait};
use ulocks_testkit::sets::{self, Action, Outcome, Refusal, Waiters};

/// Sleepers sleep at once.
pub type Sleeps = Private<NoSpin>;

/// An array of these values.
pub fn array(values: &[u32], limit: u32, fairness: Fairness) -> RawSemArray<Sleeps> {
    RawSemArray::new(values, limit, Builder::MAX_OPS, fairness)
}

/// The same operation for the crate.
pub fn op(op: &sets::Op) -> Op {
    let sets::Op { index, action, no_wait } = *op;
    let op = match action {
        Action::Add(amount) => Op::add(index, amount),
        Action::Sub(amount) => Op::sub(index, amount),
        Action::WaitZero => Op::wait_zero(index),
    };
    if no_wait { op.no_wait() } else { op }
}

/// The same set for the crate.
pub fn set(ops: &[sets::Op]) -> Set {
    ops.iter().map(op).collect()
}

/// The same outcome for the model.
pub fn outcome<T>(result: Result<T, Error>) -> Outcome {
    result.map(drop).map_err(|error| match error {
        Error::WouldBlock => Refusal::WouldBlock,
        Error::TimedOut => Refusal::TimedOut,
        Error::Interrupted => Refusal::Interrupted,
        Error::ValueOutOfRange { index, .. } => Refusal::OutOfRange(index),
        Error::IndexOutOfRange { index, .. } => Refusal::NoSuch(index),
        Error::Closed => Refusal::Closed,
        other => panic!("{other}"),
    })
}

impl Subject for RawSemArray<Sleeps> {
    fn apply(&self, ops: &[sets::Op], patience: Patience) -> Outcome {
        let wait = match patience {
            Patience::None => Wait::No,
            Patience::Short => Wait::Until(Some(Deadline::after(Duration::from_micros(50)))),
            Patience::Endless => Wait::Interruptible(None),
        };
        outcome(self.apply(&set(ops), wait))
    }

    fn set(&self, index: usize, value: u32) -> Outcome {
        outcome(self.set(index, value))
    }

    fn set_all(&self, values: &[u32]) -> Outcome {
        outcome(self.set_all(values))
    }

    fn give_back(&self, ops: &[sets::Op]) {
        // An array that was closed takes nothing back.
        _ = self.give_back(&set(ops));
    }

    fn close(&self) {
        self.close();
    }

    fn values(&self) -> Vec<u32> {
        self.values()
    }

    fn waiters(&self) -> Vec<Waiters> {
        let at = |index| {
            let ulocks_semarray::Waiters { increase, zero } = self.waiters(index).expect("an index in range");
            Waiters { increase, zero }
        };
        (0..self.len()).map(at).collect()
    }
}
