//! Semaphores that are used as locks.

use crate::common::leaked;
use crate::harness::{breaks, fault};
use crate::{Fault, awaits, dropped, open, order, twice};
use std::mem::{self, ManuallyDrop};
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    twice! { "recursion of a semaphore that is a lock", NoRecursion [slot = Semaphore::new(1)]
    slot.acquire_as_lock();
    slot.acquire_as_lock() },
    order! { "inversion of a semaphore that is a lock, and a mutex", [slot = Semaphore::new(1), mutex = Mutex::new(())]
    slot.acquire_as_lock();
    mutex.lock();
    mutex.lock();
    slot.acquire_as_lock() },
    ("a thread ends with the permit of a semaphore that is a lock", || {
        let slot = leaked(Semaphore::new(1));
        let before = line!() + 1;
        std::thread::spawn(|| mem::forget(slot.try_acquire_as_lock())).join().unwrap();
        vec![fault(Rule::NoExit, None, before)]
    }),
    dropped! { "a semaphore that is a lock is dropped while it is held", [slot = Semaphore::new(1)]
    slot.acquire_as_lock();
    drop(slot) },
    ("a semaphore that is a lock is moved, then locked", || {
        let slot = Semaphore::new(1);
        let before = line!() + 1;
        mem::forget(slot.acquire_as_lock());
        let moved = ManuallyDrop::new(Box::new(slot));
        let here = line!() + 1;
        breaks(|| drop(moved.acquire_as_lock()));
        vec![fault(Rule::NotMoved, here, before), fault(Rule::NoExit, None, before)]
    }),
    awaits! { "an await with the permit of a semaphore that is a lock", [slot = Semaphore::new(1)]
    slot.acquire_as_lock() },
    open! { "a semaphore that is a lock of a handler, with the signal open", libc::SIGUSR1, [slot = Semaphore::new(1)]
    slot.acquire_as_lock();
    slot.try_acquire_as_lock() },
];
