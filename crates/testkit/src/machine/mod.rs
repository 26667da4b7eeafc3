//! Clients for the machine: many operations, real threads and processes, the real kernel.

pub mod allocations;
pub mod cancel;
pub mod cdylib;
mod child;
pub mod crowd;
pub mod interrupt;
pub mod limit;
pub mod refusal;
pub mod rw;
pub mod shared;
pub mod storm;
pub mod stress;
pub mod task;
pub mod watchdog;

pub use child::Child;
