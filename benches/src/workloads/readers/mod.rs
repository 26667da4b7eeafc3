//! Reader-writer locks in the runs of the seed's test module of 2008.
//!
//! ```text
//! Run (roles.rs)  which threads there are and what each does
//! Spec (spec.rs)  a run of a lock, for a process of its own; Outcome, what comes back
//! run.rs          carries it out: starts the threads, opens and closes the window, gathers
//! thread.rs       what a thread does; timers.rs and handler.rs, its signal handler
//! batch.rs        lock and unlock by themselves, far below a step of the clock
//! shared_data.rs  what the lock protects
//! ```

pub mod batch;
mod handler;
mod roles;
mod run;
mod shared_data;
mod spec;
mod thread;
mod timers;

pub use crate::subjects::rwlocks::Rank;
pub use roles::{Duty, Handlers, Kind, Probe, Run};
pub use spec::{HandlerOutcome, Outcome, RoleOutcome, Spec};

#[cfg(test)]
mod tests;
