//! Thousands of threads that wait at once, for few semaphores and for many. They allocate nothing,
//! and all are served in their order. A thread that serves hundreds makes few calls for it.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod crowds;
mod semaphores;
mod wake_calls;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;

/// One test at a time: seats are counted for the whole process.
struct Alone(#[allow(dead_code, reason = "its drop lets the next one in")] MutexGuard<'static, ()>);

fn alone() -> Alone {
    static ONE: Mutex<()> = Mutex::new(());
    Alone(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(ulocks_semarray::groups::claimed(), 0, "no thread sleeps, and seats are taken");
        }
    }
}
