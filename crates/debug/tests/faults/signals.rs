//! Locks of signal handlers, acquired with the signal open.

use crate::common::{blocked, interrupt, leaked, opened, own_signal, signals};
use crate::harness::{AT_EXIT, breaks, fault};
use crate::{Fault, open};
use libc::{SIGUSR1, SIGUSR2};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ulocks_debug::*;
use ulocks_psrwlock::Nested;

pub const TABLE: &[Fault] = &[
    // The place is that of the first acquisition, which the thread made in between.
    ("a lock with the signal open, and then in a handler", || {
        let mutex = leaked(Mutex::new(()));
        let (first, here) = (mutex.lock(), line!());
        drop(first);
        let before = line!() + 1;
        interrupt(SIGUSR1, || drop(mutex.lock()));
        breaks(|| blocked(&[SIGUSR1], || drop(mutex.lock())));
        // Once is enough.
        blocked(&[SIGUSR1], || drop(mutex.lock()));
        vec![fault(Rule::NoOpenSignal, here, before)]
    }),
    ("a lock with the signal open, and then in a handler, and never again", || {
        let mutex = leaked(Mutex::new(()));
        let (first, here) = (mutex.lock(), line!());
        drop(first);
        let before = line!() + 1;
        interrupt(SIGUSR1, || drop(mutex.lock()));
        AT_EXIT.store(true, Relaxed);
        std::thread::spawn(|| drop(Mutex::new(()).lock())).join().unwrap();
        AT_EXIT.store(false, Relaxed);
        vec![fault(Rule::NoOpenSignal, here, before)]
    }),
    open! { "another lock of the class, with the signal open", SIGUSR1, [of = [(); 2].map(|()| Mutex::new(()))]
    of[0].lock();
    of[1].lock() },
    // The lock in subclass 0 is no fault.
    open! { "a lock in a subclass, with the signal open", SIGUSR1, [mutex = Mutex::new(())]
    mutex.lock_nested(1);
    { drop(mutex.lock()); mutex.lock_nested(1) } },
    open! { "a try with the signal open", SIGUSR1, [mutex = FairMutex::new(())]
    mutex.lock();
    mutex.try_lock() },
    open! { "a deadline with the signal open", SIGUSR1, [mutex = FairMutex::new(())]
    mutex.lock();
    mutex.try_lock_for(Duration::from_secs(1)) },
    open! { "another signal blocked than that of the handler", SIGUSR2, [mutex = Mutex::new(())]
    mutex.lock();
    blocked(&[SIGUSR1], || mutex.lock()) },
    ("a lock of two handlers, of which one may interrupt the other", || {
        let (mutex, other) = (leaked(Mutex::new(())), own_signal(0));
        let here = line!() + 1;
        interrupt(SIGUSR1, move || opened(&[other], || drop(mutex.lock())));
        let before = line!() + 1;
        interrupt(other, || drop(mutex.lock()));
        breaks(|| blocked(&signals(), || drop(mutex.lock())));
        vec![fault(Rule::NoOpenSignal, here, before)]
    }),
    open! { "a reentrant lock of a handler, with the signal open", SIGUSR1, [mutex = ReentrantMutex::new(())]
    (mutex.lock(), mutex.lock());
    mutex.lock() },
    open! { "a write with the signal open, and a handler that reads", SIGUSR1, [lock = RwLock::new(())]
    lock.read_in::<Nested>();
    { drop(lock.read()); lock.write() } },
    open! { "a read with the signal open, and a handler that writes", SIGUSR1, [lock = RwLock::new(())]
    lock.write();
    lock.read_in::<Nested>() },
    // A writer may come between.
    open! { "a read with the signal open, and a handler that reads", SIGUSR1, [lock = RwLock::new(())]
    lock.read();
    lock.read() },
    open! { "an upgrade with the signal open, and a handler that reads in a high class", SIGUSR1, [lock = RwLock::new(())]
    lock.read_in::<Nested>();
    RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) },
    ("a handler ends with a lock", || {
        let mutex = leaked(Mutex::new(()));
        let before = line!() + 1;
        interrupt(SIGUSR1, || mem::forget(mutex.lock()));
        vec![fault(Rule::NoExit, None, before)]
    }),
];
