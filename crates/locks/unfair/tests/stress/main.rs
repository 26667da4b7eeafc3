//! The locks under load on the machine: threads of one process.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod asym;
mod barging;
#[cfg(feature = "parking_lot")]
mod byte;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod throughput;
