//! Models of the array and its rooms.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod array;
#[path = "../common/arrays.rs"]
mod arrays;
mod gate;
mod groups;
#[path = "../common/latch.rs"]
mod latch;
#[path = "../common/sleepers.rs"]
mod sleepers;
