//! The world of the virtual machine: what the protocol of an array stands on there. A process has
//! one thread, and dies with it. `mapping.rs` is a part of `array`.

pub mod process;
pub mod registry;
pub mod robust;
pub mod signal;
pub mod sys;
