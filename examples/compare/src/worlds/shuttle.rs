//! Shuttle's: it has no cell.

mod world {
    pub use super::super::Unchecked as UnsafeCell;
    pub use shuttle::sync::Arc;
    pub use shuttle::sync::atomic::{AtomicU32, fence};
    pub use shuttle::thread::{JoinHandle, spawn, yield_now};
}
#[path = "../families/mod.rs"]
pub mod families;
#[path = "../programs.rs"]
pub mod programs;
