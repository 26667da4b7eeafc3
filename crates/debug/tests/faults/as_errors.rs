//! Faults that attempts return as errors, and do not report.

use crate::Fault;
use crate::common::{blocked, interrupt};
use crate::harness::{Places, circle, fault, places};
use libc::SIGUSR1;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    ("a write while reading, as an error", write_while_reading),
    ("a read while writing, as an error", read_while_writing),
    ("a second write, as an error", second_write),
    ("a second read, as an error", second_read),
    ("a read against the order, as an error", read_against_order),
    ("a write against the order, as an error", write_against_order),
    ("a mutex against the order, as an error", mutex_against_order),
    ("a mutex of a handler with the signal open, as an error", open_mutex),
    ("a read with the signal open, as an error", open_read),
];

/// The error has these places. Nothing is reported.
fn is<T>(result: Result<T, TryLockError>, expected: &Places) -> Vec<Places> {
    let Err(TryLockError::Fault(report)) = result else { panic!("no fault") };
    assert_eq!(places(&report), *expected);
    Vec::new()
}

fn write_while_reading() -> Vec<Places> {
    let lock = RwLock::new(());
    let (_held, before) = (lock.read(), line!());
    let (result, here) = (lock.try_write_checked(), line!());
    is(result, &fault(Rule::NoRecursion, here, before))
}

fn read_while_writing() -> Vec<Places> {
    let lock = RwLock::new(());
    let (_held, before) = (lock.try_write_checked().unwrap(), line!());
    let (result, here) = (lock.try_read_checked(), line!());
    is(result, &fault(Rule::NoRecursion, here, before))
}

fn second_write() -> Vec<Places> {
    let lock = RwLock::new(());
    let (_held, before) = (lock.write(), line!());
    let (result, here) = (lock.try_write_checked(), line!());
    is(result, &fault(Rule::NoRecursion, here, before))
}

fn second_read() -> Vec<Places> {
    let lock = RwLock::new(());
    let (_held, before) = (lock.try_read_checked().unwrap(), line!());
    let (result, here) = (lock.try_read_checked(), line!());
    is(result, &fault(Rule::NoReadAgain, here, before))
}

fn read_against_order() -> Vec<Places> {
    let (lock, mutex) = (RwLock::new(()), Mutex::new(()));
    let (held, a1) = (lock.write(), line!());
    let (inner, b1) = (mutex.lock(), line!());
    drop((inner, held));
    let (_held, b2) = (mutex.lock(), line!());
    let (result, a2) = (lock.try_read_checked(), line!());
    is(result, &circle(Rule::Order, &[(b2, a2), (a1, b1)]))
}

fn write_against_order() -> Vec<Places> {
    let (lock, mutex) = (RwLock::new(()), Mutex::new(()));
    let (held, a1) = (lock.read(), line!());
    let (inner, b1) = (mutex.lock(), line!());
    drop((inner, held));
    let (_held, b2) = (mutex.lock(), line!());
    let (result, a2) = (lock.try_write_checked(), line!());
    is(result, &circle(Rule::Order, &[(b2, a2), (a1, b1)]))
}

fn mutex_against_order() -> Vec<Places> {
    let (lock, mutex) = (RwLock::new(()), Mutex::new(()));
    let (held, a1) = (mutex.try_lock_checked().unwrap(), line!());
    let (inner, b1) = (lock.try_write_checked().unwrap(), line!());
    drop((inner, held));
    let (_held, b2) = (lock.read(), line!());
    let (result, a2) = (mutex.try_lock_checked(), line!());
    is(result, &circle(Rule::Order, &[(b2, a2), (a1, b1)]))
}

fn open_mutex() -> Vec<Places> {
    let mutex: &Mutex<()> = Box::leak(Box::new(Mutex::new(())));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(mutex.lock()));
    drop(blocked(&[SIGUSR1], || mutex.try_lock_checked().unwrap()));
    let (result, here) = (mutex.try_lock_checked(), line!());
    is(result, &fault(Rule::NoOpenSignal, here, before))
}

fn open_read() -> Vec<Places> {
    let lock: &RwLock<()> = Box::leak(Box::new(RwLock::new(())));
    let before = line!() + 1;
    interrupt(SIGUSR1, || drop(lock.write()));
    drop(blocked(&[SIGUSR1], || lock.try_read_checked().unwrap()));
    let (result, here) = (lock.try_read_checked(), line!());
    is(result, &fault(Rule::NoOpenSignal, here, before))
}
