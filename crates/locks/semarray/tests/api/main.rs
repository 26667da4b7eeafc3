//! The public functions of the array, one step after the other: every error, every order that is
//! promised, every kind of waiting set.
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
