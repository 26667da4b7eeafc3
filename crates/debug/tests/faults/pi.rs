//! Faults with a mutex that inherits priority, which returns errors, and its condition variable.

use crate::deadlocks::{await_waiters, held_by_me};
use crate::harness::{AT_EXIT, breaks, circle, fault};
use crate::{Fault, dropped, ends, order, twice};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;
use ulocks_core::api::Token;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    ("recursion of a PiMutex that returns errors", || {
        let mutex = PiMutex::new(());
        let (_held, before) = (mutex.lock().unwrap(), line!());
        breaks(|| drop(mutex.lock()));
        let here = line!() - 1;
        // They do not wait for ever, so they break no rule.
        assert!(mutex.try_lock().unwrap().is_none());
        assert!(matches!(mutex.try_lock_for(SHORT), Err(PiLockError::Deadlock)));
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    twice! { "recursion of a PiMutex after a wait", NoRecursion [mutex = PiMutex::new(()), changed = PiCondvar::new()]
    wait(&changed, mutex.lock().unwrap());
    mutex.lock() },
    // The plain mutex tells it, so the thread gets the error.
    ("recursion of a PiMutex, and the policy goes on", || {
        let mutex = PiMutex::new(());
        let (held, before) = (mutex.lock().unwrap(), line!());
        AT_EXIT.store(true, Relaxed);
        let (result, here) = (mutex.lock(), line!());
        AT_EXIT.store(false, Relaxed);
        assert!(matches!(result, Err(PiLockError::Deadlock)));
        assert_eq!(held_by_me(), 1);
        drop(held);
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    ("a release of a PiMutex by another thread", || {
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
    }),
    ("a wait with a PiMutex that is not held any more", || {
        let (mutex, changed) = (PiMutex::new(()), PiCondvar::new());
        let held = mutex.lock().unwrap();
        // SAFETY: a planted fault: the mutex protects nothing.
        unsafe { mutex.as_infallible().force_unlock(Token::new(())) };
        breaks(|| mem::forget(wait(&changed, held)));
        drop(mutex.lock().unwrap());
        vec![fault(Rule::ReleasedOnce, None, None)]
    }),
    ("a wait with another lock: PiCondvar", || {
        let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
        let (_other, before) = (other.lock(), line!());
        let (mut held, here) = (mutex.lock().unwrap(), line!());
        for _ in 0..3 {
            held = wait(&changed, held);
        }
        vec![fault(Rule::NoLockInWait, here, before)]
    }),
    // The other lock is acquired below the mutex. The wait acquires the mutex below the other lock.
    ("a wait that acquires a PiMutex against the order", || {
        let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
        let (held, here) = (mutex.lock().unwrap(), line!());
        let (_other, before) = (other.lock(), line!());
        drop(wait(&changed, held));
        vec![fault(Rule::NoLockInWait, here, before), circle(Rule::Order, &[(before, here), (here, before)])]
    }),
    ("an order that a wait has made", || {
        let (mutex, other, changed) = (PiMutex::new(()), Mutex::new(()), PiCondvar::new());
        let (held, first) = (mutex.lock().unwrap(), line!());
        let (in_other, second) = (other.try_lock().unwrap(), line!());
        drop((wait(&changed, held), in_other));
        let (_held, third) = (mutex.lock().unwrap(), line!());
        breaks(|| drop(other.lock()));
        let fourth = line!() - 1;
        vec![
            fault(Rule::NoLockInWait, first, second),
            circle(Rule::Order, &[(third, fourth), (second, first)]),
        ]
    }),
    // A wait that ends has no order.
    order! { "inversion of two PiMutexes", [a = PiMutex::new(()), b = PiMutex::new(())]
    a.lock().unwrap();
    b.lock().unwrap();
    b.lock().unwrap();
    { drop(a.try_lock_for(SHORT).unwrap()); a.lock() } },
    order! { "inversion of the subclasses of PiMutexes", [nodes = [(); 2].map(|()| PiMutex::new(()))]
    nodes[0].lock().unwrap();
    nodes[1].lock_nested(1).unwrap();
    nodes[1].lock_nested(1).unwrap();
    nodes[0].lock() },
    ends! { "a thread ends with a PiMutex that a wait gave it", [a = PiMutex::new(()), changed = PiCondvar::new()]
    wait(changed, a.lock().unwrap()) },
    // The kernel gives the mutex to a waiter. That one is told of the death, and is no second
    // holder.
    ("a thread ends with a PiMutex, and the next one gets it", || {
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
        let Err(PiLockError::OwnerDied(orphan)) = LOCK.lock() else { panic!("not told") };
        // SAFETY: the guard was forgotten, and nothing is left of it.
        drop(unsafe { orphan.into_guard() });
        assert!(!LOCK.is_locked());
        drop(LOCK.lock().unwrap());
        vec![fault(Rule::NoExit, None, owner.join().unwrap())]
    }),
    // The mutex stays locked, so the wait ends with an error and without the mutex.
    ("a thread ends with a PiMutex that another one waits with", || {
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
                // SAFETY: the guard was forgotten, and nothing is left of it.
                Err(PiLockError::OwnerDied(orphan)) => break drop(unsafe { orphan.into_guard() }),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(held_by_me(), 0);
        vec![fault(Rule::NoExit, None, owner.join().unwrap())]
    }),
    dropped! { "a PiMutex is dropped after a wait, while it is held", [mutex = PiMutex::new(())]
    wait(&PiCondvar::new(), mutex.lock().unwrap());
    drop(mutex) },
];

const SHORT: Duration = Duration::from_millis(1);

/// Waits in vain.
fn wait<'a>(changed: &PiCondvar, guard: PiMutexGuard<'a, ()>) -> PiMutexGuard<'a, ()> {
    changed.wait_for(guard, SHORT).unwrap().0
}
