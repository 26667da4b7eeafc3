//! Models of the array and its rooms, and of what each of them would miss if it found nothing.
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
