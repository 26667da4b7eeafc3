//! The array under load on the machine.
//!
//! ThreadSanitizer does not understand the fences of the parking slots, which only decide whether
//! one thread sees another wait. The releases and acquisitions of the words order the data, and it
//! understands these.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod last_touch;
mod load;
mod pages;
