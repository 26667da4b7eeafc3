//! Locks of signal handlers, acquired with the signal open.

use crate::Fault;
use crate::common::{blocked, interrupt, opened, own_signal, signals};
use crate::harness::{AT_EXIT, Places, breaks, fault};
use libc::{SIGUSR1, SIGUSR2};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex;
use ulocks_debug::*;
use ulocks_psrwlock::Nested;

pub const TABLE: &[Fault] = &[
    ("a lock of a handler, with the signal open: Mutex", open::<ulocks_unfair::RawThroughputMutex>),
    ("a lock of a handler, with the signal open: BargingMutex", open::<ulocks_unfair::RawBargingMutex>),
    ("a lock of a handler, with the signal open: FairMutex", open::<ulocks_fair::RawFairMutex>),
    ("a lock of a handler, with the signal open: Calock", open::<ulocks_calock::RawCalock>),
    ("a lock of a handler, with the signal open: PiMutex", open::<ulocks_pi::RawPiMutex>),
    ("a lock with the signal open, and then in a handler", open_first),
    ("a lock with the signal open, and then in a handler, and never again", never_again),
    ("another lock of the class, with the signal open", other_lock),
    ("a lock in a subclass, with the signal open", nested),
    ("a try with the signal open", try_open),
    ("a deadline with the signal open", timed_open),
    ("another signal blocked than that of the handler", other_signal),
    ("a lock of two handlers, of which one may interrupt the other", two_handlers),
    ("a reentrant lock of a handler, with the signal open", reentrant),
    ("a write with the signal open, and a handler that reads", write_open),
    ("a read with the signal open, and a handler that writes", read_open),
    ("a read with the signal open, and a handler that reads", read_and_read),
    ("an upgrade with the signal open, and a handler that reads in a high class", upgrade_open),
    ("a handler ends with a lock", ends_with_lock),
];

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn open<R: RawMutex<Scope = Local> + Send + Sync + 'static>() -> Vec<Places> {
    let mutex = leaked(CheckedMutex::<R, ()>::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    blocked(&[SIGUSR1], || drop(mutex.lock()));
    breaks(|| drop(mutex.lock()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

/// The place is that of the first acquisition, which the thread made in between.
fn open_first() -> Vec<Places> {
    let mutex = leaked(Mutex::new(()));
    let (first, here) = (mutex.lock(), line!());
    drop(first);
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    breaks(|| blocked(&[SIGUSR1], || drop(mutex.lock())));
    // Once is enough.
    blocked(&[SIGUSR1], || drop(mutex.lock()));
    vec![fault(Rule::NoOpenSignal, here, before)]
}

fn never_again() -> Vec<Places> {
    let mutex = leaked(Mutex::new(()));
    let (first, here) = (mutex.lock(), line!());
    drop(first);
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    AT_EXIT.store(true, Relaxed);
    std::thread::spawn(|| drop(Mutex::new(()).lock())).join().unwrap();
    AT_EXIT.store(false, Relaxed);
    vec![fault(Rule::NoOpenSignal, here, before)]
}

fn other_lock() -> Vec<Places> {
    let mutexes = leaked([0, 1].map(Mutex::new));
    let before = line!() + 1;
    interrupt(SIGUSR1, || *mutexes[0].lock() += 1);
    breaks(|| *mutexes[1].lock() += 1);
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

/// The lock in subclass 0 is no fault.
fn nested() -> Vec<Places> {
    let mutex = leaked(Mutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock_nested(1)));
    drop(mutex.lock());
    breaks(|| drop(mutex.lock_nested(1)));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn try_open() -> Vec<Places> {
    let mutex = leaked(FairMutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    breaks(|| drop(mutex.try_lock()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn timed_open() -> Vec<Places> {
    let mutex = leaked(FairMutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    breaks(|| drop(mutex.try_lock_for(Duration::from_secs(1))));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn other_signal() -> Vec<Places> {
    let mutex = leaked(Mutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR2, || drop(mutex.lock()));
    let here = line!() + 1;
    breaks(|| blocked(&[SIGUSR1], || drop(mutex.lock())));
    vec![fault(Rule::NoOpenSignal, here, before)]
}

fn two_handlers() -> Vec<Places> {
    let (mutex, other) = (leaked(Mutex::new(())), own_signal(0));
    let here = line!() + 1;
    interrupt(SIGUSR1, move || opened(&[other], || drop(mutex.lock())));
    let before = line!() + 1;
    interrupt(other, || drop(mutex.lock()));
    breaks(|| blocked(&signals(), || drop(mutex.lock())));
    vec![fault(Rule::NoOpenSignal, here, before)]
}

fn reentrant() -> Vec<Places> {
    let mutex = leaked(ReentrantMutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop((mutex.lock(), mutex.lock())));
    breaks(|| drop(mutex.lock()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn write_open() -> Vec<Places> {
    let lock = leaked(RwLock::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(lock.read_in::<Nested>()));
    drop(lock.read());
    breaks(|| drop(lock.write()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn read_open() -> Vec<Places> {
    let lock = leaked(RwLock::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(lock.write()));
    breaks(|| drop(lock.read_in::<Nested>()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

/// A writer may come between.
fn read_and_read() -> Vec<Places> {
    let lock = leaked(RwLock::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(lock.read()));
    breaks(|| drop(lock.read()));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn upgrade_open() -> Vec<Places> {
    let lock = leaked(RwLock::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(lock.read_in::<Nested>()));
    let held = lock.upgradable_read();
    breaks(|| drop(RwLockUpgradableReadGuard::upgrade(held)));
    vec![fault(Rule::NoOpenSignal, line!() - 1, before)]
}

fn ends_with_lock() -> Vec<Places> {
    let mutex = leaked(Mutex::new(()));
    let before = line!() + 1;
    interrupt(SIGUSR1, || mem::forget(mutex.lock()));
    vec![fault(Rule::NoExit, None, before)]
}
