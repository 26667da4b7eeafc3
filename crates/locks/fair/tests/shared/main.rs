//! The locks between processes: policy `Shared`, in memory that forked children map too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod mutex;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
