//! The same scripts on the arrays of the kernel, on ours, and on the model.
//!
//! Threads do one step at a time. After each step all that can be seen is compared: which sets
//! ended and how, the values, the waiting sets of each semaphore. The kernel does what the model
//! says of Linux, and our array does what the model promises. Where the model says the same of
//! both, which is nearly everywhere, the two are compared with each other.
//!
//! `PROPTEST_CASES` is the number of random scripts; the default is 400. If the kernel has no such
//! arrays, its half is left out, and the test says so.
//!
//! Not on 32-bit processors, where the kernel's call has another name and another time.
#![cfg(all(not(any(ulocks_loom, ulocks_vm)), target_pointer_width = "64"))]

#[path = "../common/crew.rs"]
mod crew;
mod kernel;
mod named;
#[path = "../common/ours.rs"]
mod ours;
mod random;
#[path = "../common/script.rs"]
mod script;
