//! What is measured, each under a name.
//!
//! There are four kinds of subjects, and one registry. An [`Entry`] says the same of each; what
//! else is known of a subject depends on its kind. A benchmark is a `Visitor` of one kind: generic
//! code that the registry calls with the type of the subject, so that every loop is compiled for
//! its subject and contains no indirect call.

#[macro_use]
mod registry;

pub mod condvars;
pub mod laps;
pub mod locks;
pub mod rwlocks;
pub mod semaphores;

pub use registry::{Entry, Kind, is_here};
