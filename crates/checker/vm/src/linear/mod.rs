//! Is a history of concurrent operations explained by some order of them, one after the other?
//!
//! A run records when each operation was called and when it returned, as numbers of one counter: a
//! [`History`]. It is *linearizable* with respect to a sequential [`Specification`] if every
//! operation can be given a point between its call and its return, such that the operations, one
//! after the other in the order of these points, do what the specification says and return what
//! they did return. An operation that never returned (its thread died, or the run was cut) may have
//! such a point after its call, or none: it took effect, or it did not.
//!
//! ```
//! use ulocks_vm::linear::specs::{Queue, QueueCall::{Pop, Push}};
//! use ulocks_vm::linear::History;
//!
//! let mut history = History::new();
//! let push_one = history.call(0, Push(1));
//! let push_two = history.call(1, Push(2));
//! history.returned(push_one, None);
//! history.returned(push_two, None);
//! let pop = history.call(0, Pop);
//! history.returned(pop, Some(2)); // The two overlapped: 2 may have come first.
//! let order = history.check(&Queue::new()).unwrap();
//! assert_eq!(order.sequence(), [push_two, push_one, pop]);
//!
//! let pop = history.call(1, Pop);
//! history.returned(pop, Some(2)); // But it was pushed only once.
//! println!("{}", history.check(&Queue::new()).unwrap_err());
//! ```
//!
//! In a run of the machine, a [`Recorder`] writes the history: clone it into the threads, wrap each
//! operation in [`record`](Recorder::record), and [`check`](Recorder::check) at the end of the
//! model.
//!
//! # What is compared
//! Linearizability takes the order of steps for the order of time. C11 promises less: a relaxed
//! load may return an old value long after a newer one was written, and a `try_lock` that fails on
//! such a value is sound although no thread held the lock *then*. So either explore without stale
//! reads, which checks the protocol alone, or allow the operation in the specification to fail at
//! any time, as [`MutexCall::Attempt`](specs::MutexCall::Attempt) does.
//!
//! Linearizability is local (Herlihy & Wing, theorem 1): a history of two objects is linearizable
//! if the histories of each are. One recorder for each object makes for shorter histories, and the
//! time to check one may grow exponentially with the number of operations that overlap.
//!
//! # Sources
//! M. Herlihy, J. Wing, "Linearizability: A Correctness Condition for Concurrent Objects" (TOPLAS
//! 1990). J. Wing, C. Gong, "Testing and Verifying Concurrent Objects" (JPDC 1993): the search. G.
//! Lowe, "Testing for Linearizability" (CCPE 2017): no configuration is searched twice. A. Horn, D.
//! Kroening, "Faster Linearizability Checking via P-Compositionality" (FORTE 2015): the list of
//! events that operations are lifted out of.

mod history;
mod report;
mod search;
pub mod specs;

pub use history::{History, Open, Operation, Recorder};
pub use report::{NotLinearizable, Order};

use core::fmt::Debug;
use core::hash::Hash;

/// What operations do when they come one after the other.
pub trait Specification {
    /// What an operation finds, and leaves behind.
    type State: Clone + Eq + Hash + Debug;
    /// An operation and its arguments.
    type Call: Debug;
    /// What an operation returns.
    type Return: PartialEq + Debug;

    /// The state before the first operation.
    fn start(&self) -> Self::State;

    /// What may come of `call` in `state`: each state it may leave, with what it returns then.
    ///
    /// One outcome for an operation that has no choice; several if it has, as a timed lock, which
    /// acquires or gives up; none if it has to wait in this state, as a lock that is held. Where
    /// there is never more than one, an `Option` will do.
    fn outcomes(
        &self,
        state: &Self::State,
        call: &Self::Call,
    ) -> impl IntoIterator<Item = (Self::State, Self::Return)>;
}
