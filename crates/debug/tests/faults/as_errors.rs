//! Faults that attempts return as errors, and do not report.

use crate::common::{blocked, interrupt, leaked};
use crate::harness::{fault, is_error};
use crate::{Fault, order_error, twice_error};
use libc::SIGUSR1;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    twice_error! { "recursion, as an error", NoRecursion [mutex = Mutex::new(())]
    mutex.lock();
    mutex.try_lock_checked() },
    twice_error! { "a PiMutex, as an error", NoRecursion [mutex = PiMutex::new(())]
    { drop(mutex.try_lock_checked().unwrap()); mutex.lock().unwrap() };
    mutex.try_lock_checked() },
    twice_error! { "a write while reading, as an error", NoRecursion [lock = RwLock::new(())]
    lock.read();
    lock.try_write_checked() },
    twice_error! { "a read while writing, as an error", NoRecursion [lock = RwLock::new(())]
    lock.try_write_checked().unwrap();
    lock.try_read_checked() },
    twice_error! { "a second write, as an error", NoRecursion [lock = RwLock::new(())]
    lock.write();
    lock.try_write_checked() },
    twice_error! { "a second read, as an error", NoReadAgain [lock = RwLock::new(())]
    lock.try_read_checked().unwrap();
    lock.try_read_checked() },
    order_error! { "inversion, as an error", [a = Mutex::new(()), b = FairMutex::new(())]
    a.lock();
    b.try_lock_checked().unwrap();
    b.lock();
    { assert!(!a.is_locked()); a.try_lock_checked() } },
    order_error! { "a read against the order, as an error", [lock = RwLock::new(()), mutex = Mutex::new(())]
    lock.write();
    mutex.lock();
    mutex.lock();
    lock.try_read_checked() },
    order_error! { "a write against the order, as an error", [lock = RwLock::new(()), mutex = Mutex::new(())]
    lock.read();
    mutex.lock();
    mutex.lock();
    lock.try_write_checked() },
    order_error! { "a mutex against the order, as an error", [lock = RwLock::new(()), mutex = Mutex::new(())]
    mutex.try_lock_checked().unwrap();
    lock.try_write_checked().unwrap();
    lock.read();
    mutex.try_lock_checked() },
    ("a mutex of a handler with the signal open, as an error", || {
        let mutex = leaked(Mutex::new(()));
        let before = line!() + 1;
        interrupt(SIGUSR1, || drop(mutex.lock()));
        drop(blocked(&[SIGUSR1], || mutex.try_lock_checked().unwrap()));
        let (result, here) = (mutex.try_lock_checked(), line!());
        is_error(result, &fault(Rule::NoOpenSignal, here, before))
    }),
    ("a read with the signal open, as an error", || {
        let lock = leaked(RwLock::new(()));
        let before = line!() + 1;
        interrupt(SIGUSR1, || drop(lock.write()));
        drop(blocked(&[SIGUSR1], || lock.try_read_checked().unwrap()));
        let (result, here) = (lock.try_read_checked(), line!());
        is_error(result, &fault(Rule::NoOpenSignal, here, before))
    }),
];
