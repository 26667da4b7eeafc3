//! The model's clients on real threads, small enough for Miri, which looks for undefined behaviour
//! and leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "../common/closing.rs"]
mod closing;
mod mutex;
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
#[path = "../common/way.rs"]
mod way;
