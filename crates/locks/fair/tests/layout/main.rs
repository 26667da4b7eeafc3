//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod closing;
mod mutex;
#[cfg(feature = "arc_lock")]
mod owned;
mod semaphore;
