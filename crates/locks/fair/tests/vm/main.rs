//! Models of the locks on the virtual machine: many threads, old values, deadlines; and of what
//! each of them would miss if it found nothing.
#![cfg(all(ulocks_vm, feature = "vm"))]

#[path = "../common/closing.rs"]
mod closing;
mod condvar;
#[path = "../common/few.rs"]
mod few;
mod mutex;
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
mod tasks;
#[path = "../common/wakers.rs"]
mod wakers;
#[path = "../common/way.rs"]
mod way;
