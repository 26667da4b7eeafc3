//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod asym;
mod barging;
#[cfg(feature = "parking_lot")]
mod byte;
mod throughput;
