//! The array under load on the machine.
//!
//! ThreadSanitizer does not understand the fence of the gates (`gate.rs`): it is for who sees whom
//! waiting. What orders data are the releases and acquisitions of the words, which it does.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod histories;
mod last_touch;
mod load;
mod pages;
mod storm;
