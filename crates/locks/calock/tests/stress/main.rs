//! The lock under load on the machine: threads of one process.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod condvar;
mod mutex;
mod starvation;
