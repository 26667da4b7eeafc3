//! The machine's.

mod world {
    pub use std::sync::Arc;
    pub use ulocks_vm::sync::{AtomicU32, UnsafeCell, fence, yield_now};
    pub use ulocks_vm::thread::{JoinHandle, spawn};
}
#[path = "../families/mod.rs"]
pub mod families;
#[path = "../programs.rs"]
pub mod programs;
