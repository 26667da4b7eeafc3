//! One file per use of the ulocks family.
//!
//! | file | what it shows |
//! |---|---|
//! | `src/bounded_queue.rs` | [`BoundedQueue`]: library code on a mutex and two condition variables |
//! | `src/job_pool.rs` | [`JobPool`]: jobs that take several things at once, on an array of semaphores |
//! | `tests/loom.rs`, `tests/vm.rs` | the same code, unchanged, model-checked under loom and on the virtual machine; and seven bugs in it that the models find |
//! | `downstream/` | a crate outside of this workspace that checks a protocol of its own on the virtual machine |
//! | `examples/pipeline.rs` | a program that uses the queue |
//! | `examples/build_farm.rs` | a program that uses the pool |
//! | `examples/static_counter.rs` | a lock in a `static`, with its contention counted |
//! | `examples/timed_lock.rs` | giving up on a lock, and on a condition |
//! | `examples/shared_counter.rs` | a lock in memory that two processes share |
//!
//! Run one with `cargo run -p ulocks-examples --example pipeline`.
//!
//! # Model-checking a crate of your own
//! In its manifest:
//! ```toml
//! [features]
//! loom = ["ulocks/loom", "dep:loom"]
//! vm = ["ulocks/vm"]
//!
//! [target.'cfg(ulocks_loom)'.dependencies]
//! loom = { version = "0.7", optional = true }
//!
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ["cfg(ulocks_loom)", "cfg(ulocks_vm)"] }
//! ```
//! In its code nothing changes. A static is declared with `ulocks::sync_static!`, a `const fn` that
//! builds a lock with `ulocks::const_fn!`; a protocol of atomics and futexes takes them from
//! `ulocks::sync` and `ulocks::futex`. Its models are tests in a file for each world, which begins
//! with `#![cfg(all(ulocks_loom, feature = "loom"))]` and starts `loom::thread`s, or with
//! `#![cfg(all(ulocks_vm, feature = "vm"))]` and starts those of `ulocks::model::thread`. They are
//! run by
//! ```console
//! $ RUSTFLAGS="--cfg ulocks_loom" cargo test --release --features loom --test loom
//! $ RUSTFLAGS="--cfg ulocks_vm" cargo test --release --features vm --test vm
//! ```
//! Without the features there is no trace of either world, neither in the build nor in the lockfile
//! of who uses the crate.

mod bounded_queue;
mod job_pool;

pub use bounded_queue::{BoundedQueue, PopError, PushError, seeded};
pub use job_pool::{Job, JobPool, Pause, PoolError, seeded as pool_seeded};
