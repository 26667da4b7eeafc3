//! Semaphore arrays under test: the kernel's, ours, and what has one semaphore at a time.
//!
//! ```text
//! registry.rs  every subject by name; arrays.rs, their types
//! spec.rs      Run, what they are put through; Spec, a run for a process of its own; Outcome, what
//!              comes back
//! wakes.rs     the program of the seed of 2010: many wait, one posts to many at a time
//! loops.rs     threads that do the same thing over and over
//! pairs.rs     sets that nobody stands in the way of
//! bench/       the programs `sembench` and `semscale`: which runs, and the tables
//! ```

pub mod arrays;
pub mod bench;
mod loops;
mod pairs;
mod registry;
mod spec;
mod wakes;

pub use loops::BULK;
pub use pairs::SetsSpec;
pub use registry::{Entry, FLOOR, FUTEX, GROUPS, KERNEL, Kind, POSIX, SEMARRAY, STRICT, all, find};
pub use spec::{Order, Outcome, Run, Spec};
pub use wakes::{EACH, PER_CALL};

#[cfg(test)]
mod tests;
