//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod mutex;
mod semaphore;

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;
