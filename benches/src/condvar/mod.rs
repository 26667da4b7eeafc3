//! Condition variables under test, each with its mutex: the family's, the peers', and one for
//! mutexes that have none.
//!
//! ```text
//! monitor.rs   Monitor: a mutex over a value, and condition variables that belong to it
//! peers.rs     std, parking_lot and every other pair with lock_api's faces, usync, PiMutex
//! placed.rs    pthread's, and a sequence word for mutexes without a condition variable
//! registry.rs  every subject by name
//! spec.rs      Run, what they are put through; Spec, a run for a process of its own; Outcome, what
//!              comes back
//! crew.rs      threads, the window, and the end: a lost wake-up is an error and not a hang
//! loops.rs     what the threads do: bounded buffer, ping-pong, notify_all of a crowd, timed waits
//! bench.rs     the program `condvar`: which runs, and the table
//! ```

pub mod bench;
mod crew;
mod loops;
pub mod monitor;
mod peers;
mod placed;
mod registry;
mod spec;

pub use registry::{Entry, Visitor, all, find, visit};
pub use spec::{Load, Notify, Outcome, Place, Run, Spec};

/// What every condition variable is compared with.
pub const PEERS: [&str; 2] = ["std", "parking_lot"];

#[cfg(test)]
mod tests;
