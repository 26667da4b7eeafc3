//! The face of the array, one step after the other: every error, every order that is promised,
//! everybody who can be waiting.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod aged;
mod close;
mod errors;
mod evaluation;
mod order;
mod permits;
mod raw;
mod set_values;
mod steps;
mod timeouts;
