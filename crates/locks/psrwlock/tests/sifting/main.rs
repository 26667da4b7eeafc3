//! Which threads are let in, and when: every test has its threads in an order that it knows, and
//! none looks at a clock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod classes;
mod giving_up;
mod limits;
mod phases;
mod steps;
#[path = "../common/threads.rs"]
mod threads;
mod upgrade;
