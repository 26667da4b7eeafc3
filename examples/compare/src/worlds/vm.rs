//! The machine's.

mod world {
    pub use std::sync::Arc;
    pub use ulocks_vm::sync::{AtomicU32, UnsafeCell, fence, yield_now};
    pub use ulocks_vm::thread::spawn;
}
#[path = "../programs.rs"]
pub mod programs;
