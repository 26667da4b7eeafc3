//! Semaphores that are used as locks.

use crate::Fault;
use crate::common::interrupt;
use crate::deadlocks::{await_waiters, only_deadlocks};
use crate::executor::{run, turn};
use crate::harness::{GO_ON, Places, breaks, circle, fault};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    ("recursion of a semaphore that is a lock", recursion),
    ("inversion of a semaphore that is a lock, and a mutex", inversion),
    ("deadlock of a semaphore that is a lock, and a mutex", deadlock),
    ("a thread ends with the permit of a semaphore that is a lock", ends_with_permit),
    ("an await with the permit of a semaphore that is a lock", awaits),
    ("a semaphore that is a lock of a handler, with the signal open", signal_open),
];

fn recursion() -> Vec<Places> {
    let slot = Semaphore::new(1);
    let (_held, before) = (slot.acquire_as_lock(), line!());
    breaks(|| drop(slot.acquire_as_lock()));
    vec![fault(Rule::NoRecursion, line!() - 1, before)]
}

fn inversion() -> Vec<Places> {
    let (slot, mutex) = (Semaphore::new(1), Mutex::new(()));
    let (permit, a1) = (slot.acquire_as_lock(), line!());
    let (inner, b1) = (mutex.lock(), line!());
    drop((inner, permit));
    let (_inner, b2) = (mutex.lock(), line!());
    breaks(|| drop(slot.acquire_as_lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn deadlock() -> Vec<Places> {
    static SLOT: Semaphore = Semaphore::new(1);
    static MUTEX: Mutex<()> = Mutex::new(());
    GO_ON.store(true, Relaxed);
    let (permit, a1) = (SLOT.acquire_as_lock(), line!());
    let (say, hear) = mpsc::channel();
    let other = std::thread::spawn(move || {
        let (_inner, b1) = (MUTEX.lock(), line!());
        say.send(()).unwrap();
        (b1, (drop(SLOT.acquire_as_lock()), line!()).1)
    });
    hear.recv().unwrap();
    await_waiters(1);
    breaks(|| drop(MUTEX.lock()));
    let b2 = line!() - 1;
    drop(permit);
    let (b1, a2) = other.join().unwrap();
    let orders = vec![circle(Rule::Order, &[(a1, b2), (b1, a2)])];
    only_deadlocks(circle(Rule::Deadlock, &[(a1, b2), (b1, a2)]), orders)
}

fn ends_with_permit() -> Vec<Places> {
    let slot: &Semaphore = Box::leak(Box::new(Semaphore::new(1)));
    let before = line!() + 1;
    std::thread::spawn(|| mem::forget(slot.try_acquire_as_lock())).join().unwrap();
    vec![fault(Rule::NoExit, None, before)]
}

fn awaits() -> Vec<Places> {
    let slot = Semaphore::new(1);
    let before = line!() + 2;
    let task = async {
        let _permit = slot.acquire_as_lock();
        turn().await;
    };
    let (task, here) = (watch(task), line!());
    breaks(|| run(vec![Box::pin(task)]));
    vec![fault(Rule::NoAwait, here, before)]
}

fn signal_open() -> Vec<Places> {
    let slot: &Semaphore = Box::leak(Box::new(Semaphore::new(1)));
    let before = line!() + 1;
    interrupt(libc::SIGUSR1, || drop(slot.acquire_as_lock()));
    breaks(|| drop(slot.try_acquire_as_lock()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}
