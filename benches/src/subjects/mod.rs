//! What is measured, each under a name.
//!
//! There are five kinds of subjects, and one registry. An [`Entry`] says the same of each; what
//! else is known of a subject depends on its kind. A subject is added as a type with the trait of
//! its kind. All that measures it has it without its type: only the loops that measure nanoseconds
//! are compiled for each subject, and contain no indirect call.

mod registry;

pub mod condvars;
pub mod laps;
pub mod locks;
pub mod rwlocks;
pub mod semaphores;
pub mod tasks;

pub use registry::{Entry, Kind};
