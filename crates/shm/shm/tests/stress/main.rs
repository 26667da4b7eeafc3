//! The robust mutex on the machine: threads and processes that are killed at known places, at each
//! instruction, and at random.
#![cfg(all(not(any(ulocks_loom, ulocks_vm)), not(miri)))]

mod data;
mod deaths;
mod held;
#[path = "../common/joined.rs"]
mod joined;
mod kills;
mod member;
mod peers;
mod place;
mod steps;
mod traced;
