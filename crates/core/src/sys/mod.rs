//! What faces the machine: the worlds, and a module for each service of theirs.
//!
//! `types` is the lowest floor, `world` stands on it, and everything else on `world`.

pub mod cpu;
pub mod errno;
pub mod futex;
pub mod membarrier;
pub mod model;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
#[cfg(not(world = "loom"))]
pub mod robust;
pub mod signal;
pub mod sync;
pub mod tid;
pub mod time;
pub mod types;
pub mod world;
