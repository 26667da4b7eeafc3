//! Faults with a mutex that inherits priority, which returns errors, and its condition variable.

use crate::Fault;
use crate::deadlocks::{await_waiters, held_by_me, only_deadlocks};
use crate::harness::{AT_EXIT, GO_ON, Places, breaks, circle, fault};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;
use ulocks_core::api::Token;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    ("recursion of a PiMutex that returns errors", recursion),
    ("recursion of a PiMutex after a wait", recursion_after_wait),
    ("recursion of a PiMutex, and the policy goes on", recursion_goes_on),
    ("a PiMutex, as an error", as_error),
    ("a release of a PiMutex by another thread", foreign_release),
    ("a wait with a PiMutex that is not held any more", wait_without),
    ("a wait with another lock: PiCondvar", wait_with_lock),
    ("a wait that acquires a PiMutex against the order", wait_against_the_order),
    ("an order that a wait has made", order_of_a_wait),
    ("inversion of two PiMutexes", inversion),
    ("inversion of the subclasses of PiMutexes", subclasses),
    ("deadlock of two PiMutexes", deadlock),
    ("a thread ends with a PiMutex that a wait gave it", exit_after_wait),
    ("a thread ends with a PiMutex, and the next one gets it", exit_and_next),
    ("a thread ends with a PiMutex that another one waits with", exit_and_waiter),
    ("a PiMutex is dropped after a wait, while it is held", dropped_after_wait),
];

const SHORT: Duration = Duration::from_millis(1);

/// Waits in vain.
fn wait<'a>(changed: &PiCondvar, guard: PiMutexGuard<'a, ()>) -> PiMutexGuard<'a, ()> {
    changed.wait_for(guard, SHORT).unwrap().0
}

fn recursion() -> Vec<Places> {
    let mutex = PiMutex::new(());
    let (_held, before) = (mutex.lock().unwrap(), line!());
    breaks(|| drop(mutex.lock()));
    let here = line!() - 1;
    // They do not wait for ever, so they break no rule.
    assert!(mutex.try_lock().unwrap().is_none());
    assert!(matches!(mutex.try_lock_for(SHORT), Err(PiLockError::Deadlock)));
    vec![fault(Rule::NoRecursion, here, before)]
}

fn recursion_after_wait() -> Vec<Places> {
    let (mutex, changed) = (PiMutex::new(()), PiCondvar::new());
    let (held, before) = (mutex.lock().unwrap(), line!());
    let _held = wait(&changed, held);
    breaks(|| drop(mutex.lock()));
    let here = line!() - 1;
    vec![fault(Rule::NoRecursion, here, before)]
}

/// The plain mutex tells it, so the thread gets the error.
fn recursion_goes_on() -> Vec<Places> {
    let mutex = PiMutex::new(());
    let (held, before) = (mutex.lock().unwrap(), line!());
    AT_EXIT.store(true, Relaxed);
    let (result, here) = (mutex.lock(), line!());
    AT_EXIT.store(false, Relaxed);
    assert!(matches!(result, Err(PiLockError::Deadlock)));
    assert_eq!(held_by_me(), 1);
    drop(held);
    vec![fault(Rule::NoRecursion, here, before)]
}

fn as_error() -> Vec<Places> {
    let mutex = PiMutex::new(());
    drop(mutex.try_lock_checked().unwrap());
    let (_held, before) = (mutex.lock().unwrap(), line!());
    let (result, here) = (mutex.try_lock_checked(), line!());
    let Err(TryLockError::Fault(report)) = result else { panic!("no error") };
    assert_eq!(crate::harness::places(&report), fault(Rule::NoRecursion, here, before));
    vec![]
}

fn foreign_release() -> Vec<Places> {
    let mutex = PiMutex::new(());
    let (held, before) = (mutex.lock().unwrap(), line!());
    let here = line!() + 4;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            // SAFETY: a planted fault; the panic of the report keeps it from happening.
            breaks(|| unsafe { mutex.as_infallible().force_unlock(Token::new(())) });
        });
        other.join().unwrap();
    });
    assert!(mutex.is_locked());
    drop(held);
    vec![fault(Rule::OwnerReleases, here, before)]
}

fn wait_without() -> Vec<Places> {
    let (mutex, changed) = (PiMutex::new(()), PiCondvar::new());
    let held = mutex.lock().unwrap();
    // SAFETY: a planted fault: the mutex protects nothing.
    unsafe { mutex.as_infallible().force_unlock(Token::new(())) };
    breaks(|| mem::forget(wait(&changed, held)));
    drop(mutex.lock().unwrap());
    vec![fault(Rule::ReleasedOnce, None, None)]
}

fn wait_with_lock() -> Vec<Places> {
    let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
    let (_other, before) = (other.lock(), line!());
    let (mut held, here) = (mutex.lock().unwrap(), line!());
    for _ in 0..3 {
        held = wait(&changed, held);
    }
    vec![fault(Rule::NoLockInWait, here, before)]
}

/// The other lock is acquired below the mutex. The wait acquires the mutex below the other lock.
fn wait_against_the_order() -> Vec<Places> {
    let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
    let (held, here) = (mutex.lock().unwrap(), line!());
    let (_other, before) = (other.lock(), line!());
    drop(wait(&changed, held));
    vec![fault(Rule::NoLockInWait, here, before), circle(Rule::Order, &[(before, here), (here, before)])]
}

fn order_of_a_wait() -> Vec<Places> {
    let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
    let (held, first) = (mutex.lock().unwrap(), line!());
    let (in_other, second) = (other.try_lock().unwrap(), line!());
    drop((wait(&changed, held), in_other));
    let (_held, third) = (mutex.lock().unwrap(), line!());
    breaks(|| drop(other.lock()));
    let fourth = line!() - 1;
    vec![fault(Rule::NoLockInWait, first, second), circle(Rule::Order, &[(third, fourth), (second, first)])]
}

fn inversion() -> Vec<Places> {
    let (a, b) = (PiMutex::new(()), PiMutex::new(()));
    let (in_a, first) = (a.lock().unwrap(), line!());
    let (in_b, second) = (b.lock().unwrap(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (b.lock().unwrap(), line!());
    // A wait that ends has no order.
    drop(a.try_lock_for(SHORT).unwrap());
    breaks(|| drop(a.lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn subclasses() -> Vec<Places> {
    let nodes = [(); 2].map(|()| PiMutex::new(()));
    let (parent, first) = (nodes[0].lock().unwrap(), line!());
    let (child, second) = (nodes[1].lock_nested(1).unwrap(), line!());
    drop((child, parent));
    let (_child, third) = (nodes[1].lock_nested(1).unwrap(), line!());
    breaks(|| drop(nodes[0].lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn deadlock() -> Vec<Places> {
    static A: PiMutex<()> = PiMutex::new(());
    static B: PiMutex<()> = PiMutex::new(());
    GO_ON.store(true, Relaxed);
    let (in_a, a1) = (A.lock().unwrap(), line!());
    let (say, hear) = mpsc::channel();
    let other = std::thread::spawn(move || {
        let (_b, b1) = (B.lock().unwrap(), line!());
        say.send(()).unwrap();
        (b1, (drop(A.lock().unwrap()), line!()).1)
    });
    hear.recv().unwrap();
    await_waiters(1);
    breaks(|| drop(B.lock()));
    let b2 = line!() - 1;
    assert_eq!(deadlocks().len(), 0, "this thread does not wait any more");
    drop(in_a);
    let (b1, a2) = other.join().unwrap();
    let orders = vec![circle(Rule::Order, &[(a1, b2), (b1, a2)])];
    only_deadlocks(circle(Rule::Deadlock, &[(a1, b2), (b1, a2)]), orders)
}

fn exit_after_wait() -> Vec<Places> {
    static LOCK: PiMutex<()> = PiMutex::new(());
    static CHANGED: PiCondvar = PiCondvar::new();
    let (held, before) = (LOCK.lock().unwrap(), line!());
    mem::forget(wait(&CHANGED, held));
    vec![fault(Rule::NoExit, None, before)]
}

/// The kernel gives the mutex to a waiter. That one is told of the death, and is no second holder.
fn exit_and_next() -> Vec<Places> {
    static LOCK: PiMutex<()> = PiMutex::new(());
    let (say, hear) = mpsc::channel();
    let owner = std::thread::spawn(move || {
        let before = line!() + 1;
        mem::forget(LOCK.lock().unwrap());
        say.send(()).unwrap();
        await_waiters(1);
        before
    });
    hear.recv().unwrap();
    let Err(PiLockError::OwnerDied(held)) = LOCK.lock() else { panic!("not told") };
    drop(held);
    assert!(!LOCK.is_locked());
    drop(LOCK.lock().unwrap());
    vec![fault(Rule::NoExit, None, owner.join().unwrap())]
}

/// The mutex stays locked, so the wait ends with an error and without the mutex.
fn exit_and_waiter() -> Vec<Places> {
    static LOCK: PiMutex<()> = PiMutex::new(());
    static CHANGED: PiCondvar = PiCondvar::new();
    let mut held = LOCK.lock().unwrap();
    let owner = std::thread::spawn(|| {
        let before = line!() + 1;
        mem::forget(LOCK.lock().unwrap());
        before
    });
    loop {
        match CHANGED.wait_for(held, Duration::from_millis(100)) {
            // The other one has not come yet.
            Ok((again, _)) => held = again,
            Err(PiLockError::OwnerGone) => break,
            // The other one ended while this one was in the queue.
            Err(PiLockError::OwnerDied(held)) => break drop(held),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(held_by_me(), 0);
    vec![fault(Rule::NoExit, None, owner.join().unwrap())]
}

fn dropped_after_wait() -> Vec<Places> {
    let (mutex, changed) = (PiMutex::new(()), PiCondvar::new());
    let (held, before) = (mutex.lock().unwrap(), line!());
    mem::forget(wait(&changed, held));
    breaks(|| drop(mutex));
    vec![fault(Rule::NotDropped, None, before)]
}
