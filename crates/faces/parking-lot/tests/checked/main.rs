//! parking_lot's names on checked locks: faults are found with their places, and what parking_lot
//! allows is let be.

#![cfg(all(feature = "checked", not(any(ulocks_loom, ulocks_vm))))]

use std::time::Duration;
use ulocks_testkit::limit::until;

mod current {
    use super::*;
    use ::ulocks_parking_lot::checked as lot;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    include!("both.inc");

    /// The message of the panic that `call` ends with.
    fn fault(call: impl FnOnce()) -> String {
        *catch_unwind(AssertUnwindSafe(call)).unwrap_err().downcast::<String>().unwrap()
    }

    /// Both lines, of this file.
    fn has_places(message: &str, lines: [u32; 2]) {
        for line in lines {
            assert!(message.contains(&format!("main.rs:{line}:")), "{message}\nlacks line {line}");
        }
    }

    #[test]
    fn a_mutex_is_not_locked_twice() {
        let mutex = lot::Mutex::new(());
        let (held, before) = (mutex.lock(), line!());
        let message = fault(|| drop(mutex.lock()));
        has_places(&message, [before, line!() - 1]);
        assert!(message.contains("self-deadlock"), "{message}");
        drop(held);
        drop(mutex.try_lock_for(Duration::from_secs(1)).unwrap());
    }

    #[test]
    fn a_lock_is_not_read_twice_nor_written_while_it_is_read() {
        let lock = lot::RwLock::new(());
        let (held, before) = (lock.read(), line!());
        has_places(&fault(|| drop(lock.read())), [before, line!()]);
        has_places(&fault(|| drop(lock.write())), [before, line!()]);
        has_places(&fault(|| drop(lock.upgradable_read())), [before, line!()]);
        drop(held);
        drop(lock.write());
    }

    #[test]
    fn locks_have_one_order() {
        let (mutex, lock) = (lot::Mutex::new(0), lot::RwLock::new(0));
        let in_mutex = mutex.lock();
        drop(lock.read());
        drop(in_mutex);
        let (in_lock, before) = (lock.read(), line!());
        let message = fault(|| drop(mutex.lock()));
        has_places(&message, [before, line!() - 1]);
        assert!(message.contains("inversion"), "{message}");
        drop(in_lock);
    }

    #[test]
    fn a_recursive_lock_is_read_twice() {
        let lock = lot::RecursiveRwLock::new(0);
        let (one, other) = (lock.read(), lock.read());
        assert_eq!(*one, *other);
        drop(one);
        let message = fault(|| drop(lock.write()));
        assert!(message.contains("self-deadlock"), "{message}");
        drop(other);
        *lock.write() += 1;
    }
}

mod deadlock;
#[cfg(feature = "v0_12")]
mod v0_12;
