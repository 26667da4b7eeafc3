//! The lock under load on the machine: threads of one process.
//!
//! ThreadSanitizer does not understand the fences between readers at slots and a writer. They are
//! for which thread sees which; what orders the data are the releases and acquisitions of the slots
//! and the state, which it does.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod face;
#[path = "../common/mixed.rs"]
mod mixed;
mod phases;
mod tasks;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "../common/variables.rs"]
mod variables;
