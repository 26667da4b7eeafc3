//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;

ulocks_testkit::crowd_tests! {
    RawCalock<Private>, RawCalock<Private<NoSpin>, Every<1_000_000>>,
}
