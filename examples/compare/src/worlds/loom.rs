//! Loom's.

mod world {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::Arc;
    pub use loom::sync::atomic::{AtomicU32, fence};
    pub use loom::thread::{JoinHandle, spawn, yield_now};
}
#[path = "../families/mod.rs"]
pub mod families;
#[path = "../programs.rs"]
pub mod programs;
