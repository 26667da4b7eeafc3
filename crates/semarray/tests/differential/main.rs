//! The same scripts on the arrays of the kernel, on ours, and on the model.
//!
//! Threads do one step at a time, and after each everything that can be seen is compared: who ended
//! and how, the values, who sleeps at which semaphore. What the kernel does is what the model says
//! of Linux, and what ours do is what it promises; where the model says the same of both, which is
//! nearly everywhere, they are compared with each other.
//!
//! `PROPTEST_CASES` is the number of random scripts, 400 unless told otherwise. Where the kernel's
//! arrays are not to be had, its half is left out, with a word about it.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "../common/crew.rs"]
mod crew;
mod kernel;
mod named;
#[path = "../common/ours.rs"]
mod ours;
mod random;
#[path = "../common/script.rs"]
mod script;
