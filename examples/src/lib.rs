//! One file per use of the ulocks family.
//!
//! | file | what it shows |
//! |---|---|
//! | `src/bounded_queue.rs` | [`BoundedQueue`]: library code on a mutex and two condition variables |
//! | `src/job_pool.rs` | [`JobPool`]: jobs that take several things at once, on an array of semaphores |
//! | `tests/loom.rs`, `tests/vm.rs` | models of the queue and the pool, under loom and on the virtual machine |
//! | `mutants/` | seven bugs that programmers make in such code, which the models find |
//! | `downstream/` | a crate outside of this workspace that checks a protocol of its own on the virtual machine |
//! | `examples/pipeline.rs` | a program that uses the queue |
//! | `examples/build_farm.rs` | a program that uses the pool |
//! | `examples/static_counter.rs` | a lock in a `static`, with its contention counted |
//! | `examples/timed_lock.rs` | timeouts of a lock and of a condition |
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
//! Most code does not change. There are three exceptions. Declare a static with
//! `ulocks::sync_static!`. Declare a `const fn` that builds a lock with `ulocks::const_fn!`. Take
//! the atomics and futexes of a protocol from `ulocks::sync` and `ulocks::futex`.
//!
//! Models are tests, with a file for each world. A file for loom begins with
//! `#![cfg(all(ulocks_loom, feature = "loom"))]` and starts threads of `loom::thread`. A file for
//! the virtual machine begins with `#![cfg(all(ulocks_vm, feature = "vm"))]` and starts threads of
//! `ulocks::model::thread`. Run them with:
//! ```console
//! $ RUSTFLAGS="--cfg ulocks_loom" cargo test --release --features loom --test loom
//! $ RUSTFLAGS="--cfg ulocks_vm" cargo test --release --features vm --test vm
//! ```
//! Without the features, neither world is in the build, or in the lockfile of a user of the crate.

mod bounded_queue;
mod job_pool;

pub use bounded_queue::{BoundedQueue, PopError, PushError};
pub use job_pool::{Job, JobPool, Pause, PoolError};
