//! The standard library's, for Miri.

mod world {
    pub use super::super::Unchecked as UnsafeCell;
    pub use std::sync::Arc;
    pub use std::sync::atomic::{AtomicU32, fence};
    pub use std::thread::{JoinHandle, spawn, yield_now};
}
#[path = "../families/mod.rs"]
pub mod families;
#[path = "../programs.rs"]
pub mod programs;
