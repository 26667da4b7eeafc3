//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod closing;
mod mutex;
mod semaphore;
