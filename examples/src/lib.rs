//! What several examples of the ulocks family use, to take home: a [`BoundedQueue`] and a
//! [`JobPool`], with their models.
//!
//! The README of this directory lists the examples.

mod bounded_queue;
mod job_pool;

pub use bounded_queue::{BoundedQueue, PopError, PushError};
pub use job_pool::{Job, JobPool, Pause, PoolError};
