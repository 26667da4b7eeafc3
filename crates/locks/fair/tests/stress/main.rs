//! The locks under load on the machine: threads of one process.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "../common/closing.rs"]
mod closing;
mod mutex;
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
mod tasks;
#[path = "../common/way.rs"]
mod way;
