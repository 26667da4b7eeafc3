//! Operations, sets and outcomes of the model, as the crate has them.

use ulocks_semarray::{Error, Op, Set};
use ulocks_testkit::sets::{self, Action, Outcome, Refusal};

/// The same operation for the crate.
fn op(op: &sets::Op) -> Op {
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
