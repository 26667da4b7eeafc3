//! Semaphore arrays in the runs of `sembench` and `semscale`.
//!
//! ```text
//! spec.rs      Run, what they are put through; Spec, a run for a process of its own; Outcome, what
//!              comes back
//! wakes.rs     the program of the seed of 2010: many wait, one posts to many at a time
//! loops.rs     threads that do the same thing over and over
//! ```

mod loops;
mod spec;
mod wakes;

pub use loops::BULK;
pub use spec::{Order, Outcome, Run, Spec};
pub use wakes::{EACH, PER_CALL};

#[cfg(test)]
pub(super) mod tests;
