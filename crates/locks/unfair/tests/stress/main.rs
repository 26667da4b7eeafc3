//! The locks under load on the machine: threads of one process.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod asym;
#[cfg(feature = "parking_lot")]
mod byte;
mod mutex;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod throughput;
