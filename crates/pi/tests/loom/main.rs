//! Models of the locks under loom.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[path = "../common/clients.rs"]
mod clients;
mod condvar;
mod mutex;
#[path = "../common/tickets.rs"]
mod tickets;
