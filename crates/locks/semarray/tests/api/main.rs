//! The public functions of the array, one step after the other: every error, every kind of
//! waiting set. `tests/differential` has the order in which sets are served.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod aged;
mod close;
mod errors;
mod permits;
mod raw;
mod steps;
mod timeouts;
mod values;
