//! What locks are made of: the traits that they implement, their policy, spinning, counters, the
//! condition variable, and the typed faces that people hold.

pub mod api;
pub mod condvar;
pub mod epoch;
pub mod interrupt;
pub mod meter;
pub mod policy;
pub mod queue;
pub mod sleep;
pub mod spin;
pub mod task;
pub mod traits;
