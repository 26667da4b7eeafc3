//! Models of the locks under loom, and of what each of them would miss if it found nothing.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[path = "../common/clients.rs"]
mod clients;
mod condvar;
mod mutex;
#[path = "../common/tickets.rs"]
mod tickets;
