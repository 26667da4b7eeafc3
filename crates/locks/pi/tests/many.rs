//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::{Private, Shared};
use ulocks_pi::RawPiMutex;

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;

ulocks_testkit::crowd_tests! { RawPiMutex<Private>, RawPiMutex<Shared> }
