//! Tasks: `block_on`, and a place for a waker.

pub use ulocks_vm::future::{AtomicWaker, block_on};
