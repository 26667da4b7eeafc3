//! What is measured, each under a name.

pub mod condvars;
pub mod locks;
pub mod rwlocks;
pub mod semaphores;
