//! Models of the locks on the virtual machine: many threads, old values, deadlines, deaths.
#![cfg(all(ulocks_vm, feature = "vm"))]

#[path = "../common/clients.rs"]
mod clients;
mod condvar;
mod mutex;
#[path = "../common/tickets.rs"]
mod tickets;
