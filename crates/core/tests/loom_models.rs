//! The futex and the typed faces under loom.
#![cfg(world = "loom")]

mod guards;
mod models;
mod outcomes;
mod rwlock_clients;
