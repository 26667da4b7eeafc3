//! Models of the locks, and of what each of them would miss if it found nothing.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod condvar;
mod mutex;
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
