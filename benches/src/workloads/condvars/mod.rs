//! Condition variables, each with its mutex, in the runs of the program `condvar`.
//!
//! ```text
//! spec.rs      Run, what they are put through; Spec, a run for a process of its own; Outcome, what
//!              comes back
//! crew.rs      threads, the window, and the end: a lost wake-up is an error and not a hang
//! loops.rs     what the threads do: bounded buffer, ping-pong, notify_all of a crowd, timed waits
//! ```

mod crew;
mod loops;
mod spec;

pub use spec::{Load, Notify, Outcome, Place, Run, Spec};

#[cfg(test)]
mod tests;
