//! Models of the array and its rooms.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod array;
#[path = "../common/arrays/mod.rs"]
mod arrays;
#[path = "../common/group_clients.rs"]
mod group_clients;
mod groups;
#[path = "../common/latch.rs"]
mod latch;
mod slots;
