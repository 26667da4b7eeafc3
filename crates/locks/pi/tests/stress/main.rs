//! The locks under load on the machine: threads of one process.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

mod condvar;
mod mutex;
