//! The lock between processes: scope `Shared`, in memory that forked children map too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod addresses;
mod children;
mod deaths;
#[path = "../common/mixed.rs"]
mod mixed;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "../common/threads.rs"]
mod threads;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "../common/variables.rs"]
mod variables;
