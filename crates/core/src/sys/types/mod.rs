//! What the worlds and the modules above them both speak of: outcomes, errors, deadlines. Nothing
//! here calls anything.

pub mod futex;
pub mod releases;
#[cfg(not(world = "loom"))]
pub mod robust;
pub mod time;
