//! Models of the array and its rooms on the virtual machine: many threads, old values, deadlines.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod array;
#[path = "../common/arrays.rs"]
mod arrays;
#[path = "../common/convert.rs"]
mod convert;
#[path = "../common/group_clients.rs"]
mod group_clients;
mod groups;
#[path = "../common/latch.rs"]
mod latch;
mod random;
mod random_aged;
mod random_corners;
mod random_memory;
mod random_recorded;
mod slots;
mod tasks;
#[path = "../common/tasks.rs"]
mod tasks_clients;
