//! The face of the array, one step after the other: every error, every order that is promised,
//! everybody who can be waiting.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod closing;
mod elders;
mod errors;
mod evaluation;
mod giving_up;
mod imposing;
mod order;
mod permits;
mod raw;
mod steps;
