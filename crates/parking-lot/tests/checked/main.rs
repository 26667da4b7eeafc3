//! parking_lot's names on checked locks: faults are found with their places, and what parking_lot
//! allows is let be.

#![cfg(all(feature = "checked", not(any(ulocks_loom, ulocks_vm))))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use ulocks_testkit::limit::until;

/// The message of the panic that `call` ends with.
fn fault(call: impl FnOnce()) -> String {
    *catch_unwind(AssertUnwindSafe(call)).unwrap_err().downcast::<String>().unwrap()
}

/// Both lines, of `both.inc`.
fn has_places(message: &str, lines: [u32; 2]) {
    for line in lines {
        assert!(message.contains(&format!("both.inc:{line}:")), "{message}\nlacks line {line}");
    }
}

mod current {
    use super::*;
    use ::ulocks_parking_lot::checked as lot;
    include!("both.inc");
}

#[cfg(feature = "v0_12")]
mod v0_12 {
    use super::*;
    use ::ulocks_parking_lot::checked::v0_12 as lot;
    include!("both.inc");
}

#[test]
#[cfg(feature = "v0_12")]
fn read_recursive_comes_in_beside_a_waiting_writer() {
    use ulocks_parking_lot::checked::ulocks_debug::waiters;
    let lock = ulocks_parking_lot::checked::v0_12::RwLock::new(0);
    std::thread::scope(|scope| {
        let first = lock.read();
        scope.spawn(|| *lock.write() += 1);
        until("a thread waits", || !waiters().is_empty());
        let again = (lock.read_recursive(), lock.read_recursive());
        assert_eq!(*first, *again.0);
        drop(first);
        drop(again);
    });
    let recursive = lock.read_recursive();
    let message = fault(|| drop(lock.read()));
    assert!(message.contains("if a writer comes between"), "{message}");
    drop(recursive);
    assert_eq!(lock.into_inner(), 1);
}

#[test]
fn a_recursive_lock_is_read_twice() {
    let lock = ulocks_parking_lot::checked::RecursiveRwLock::new(0);
    let (one, other) = (lock.read(), lock.read());
    assert_eq!(*one, *other);
    drop(one);
    let message = fault(|| drop(lock.write()));
    assert!(message.contains("self-deadlock"), "{message}");
    drop(other);
    *lock.write() += 1;
}
