//! More readers than a lock counts.

#![cfg(all(feature = "v0_12", not(any(ulocks_loom, ulocks_vm))))]

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_parking_lot::v0_12::{RwLock, RwLockReadGuard};
use ulocks_testkit::refusal::aborts;

/// The guard lives on with lock_api 0.4, also if a panic takes the place of its read lock.
#[test]
fn a_read_guard_that_cannot_have_its_lock_back_aborts() {
    let says = ["too many Bulk readers", "ulocks: the process aborts, because guards of lock_api 0.4"];
    aborts("a_read_guard_that_cannot_have_its_lock_back_aborts", &says, || {
        let lock = RwLock::new(0);
        let mut guard = lock.read();
        let all_others = || {
            while let Some(other) = lock.try_read() {
                forget(other);
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(|| RwLockReadGuard::unlocked(&mut guard, all_others)));
        eprintln!("the acquisition has unwound");
    });
}
