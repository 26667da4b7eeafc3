#![doc = include_str!("../README.md")]

pub mod alloc;
pub mod cell;
pub mod future;
pub mod hint;
pub mod lazy_static;
pub mod model;
pub mod sync;
pub mod thread;

#[doc(inline)]
pub use model::model;
pub use ulocks_vm::explore::{resume as explore, skip as skip_branch, stop as stop_exploring};
pub use ulocks_vm::thread_local;

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: ulocks_vm::alloc::Allocator = ulocks_vm::alloc::Allocator;

/// loom's limit of threads. There is none here: [`model::Builder::max_threads`] has no effect.
pub const MAX_THREADS: usize = 5;
