//! The futex and the typed faces on the virtual machine.
#![cfg(world = "vm")]

mod guards;
mod models;
mod outcomes;
mod rwlock_clients;
