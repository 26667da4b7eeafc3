//! What a child of fork holds, and what a process that ends leaves behind.

use std::time::Duration;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared, tid};
use ulocks_pi::{PiCondvarWith, PiLockError, PiMutex, PiMutexWith};
use ulocks_testkit::Child;
use ulocks_testkit::shared::{Mapping, forked};

type Mutex = PiMutexWith<u32, Shared<NoSpin>>;

fn placed<T>(mapping: &Mapping, value: T) -> &T {
    let place = mapping.place::<T>();
    // SAFETY: a fresh page that is large enough and lives as long as the borrow.
    unsafe {
        place.write(value);
        &*place
    }
}

#[test]
fn a_child_does_not_hold_what_its_parent_holds() {
    let mapping = Mapping::shared();
    let mutex = placed(&mapping, Mutex::new(0));
    let copied = PiMutex::new(0);
    let mut held = Some((mutex.lock().unwrap(), copied.lock().unwrap()));
    let parent = tid::current();
    let held = std::cell::RefCell::new(&mut held);
    forked(1, |_| {
        assert_ne!(tid::current(), parent);
        assert!(mutex.try_lock().unwrap().is_none());
        assert!(mutex.try_lock_for(Duration::from_millis(1)).unwrap().is_none());
        // The copy of the guards: to drop them is nothing.
        drop(held.borrow_mut().take());
        assert!(mutex.try_lock().unwrap().is_none());
        assert_eq!(mutex.raw().state().owner(), parent);
        assert_eq!(copied.raw().state().owner(), parent);
        // What no thread held works as ever, with the child's own id.
        let fresh = PiMutex::new(1);
        let guard = fresh.lock().unwrap();
        assert_eq!(fresh.raw().state().owner(), tid::current());
        assert!(matches!(fresh.lock(), Err(PiLockError::Deadlock)));
        drop(guard);
        assert!(!fresh.is_locked());
    });
    assert_eq!(mutex.raw().state().owner(), parent);
    drop(held.borrow_mut().take());
    assert!(!mutex.is_locked() && !copied.is_locked());
    forked(1, |_| *mutex.lock().unwrap() = 7);
    assert_eq!(*mutex.lock().unwrap(), 7);
}

#[test]
fn a_process_that_ends_with_the_mutex_is_told_of() {
    let mapping = Mapping::shared();
    let mutex = placed(&mapping, Mutex::new(0));
    forked(1, |_| {
        let mut guard = mutex.lock().unwrap();
        *guard = 1;
        std::mem::forget(guard);
    });
    // No thread waited when it ended.
    assert!(matches!(mutex.lock(), Err(PiLockError::OwnerGone)));
    assert!(matches!(mutex.try_lock_for(Duration::from_secs(60)), Err(PiLockError::OwnerGone)));
    assert!(mutex.try_lock().unwrap().is_none());
}

#[test]
fn who_waits_inherits_from_a_process_that_ends() {
    let mapping = Mapping::shared();
    let mutex = placed(&mapping, Mutex::new(0));
    forked(2, |me| {
        if me == 0 {
            let mut guard = mutex.lock().unwrap();
            *guard = 1;
            // Until the other one waits.
            ulocks_testkit::limit::until("the mutex has waiters", || mutex.raw().state().has_waiters());
            std::mem::forget(guard);
        } else {
            ulocks_testkit::limit::until("the other process has counted", || *unlocked(mutex) != 0);
            let Err(PiLockError::OwnerDied(orphan)) = mutex.lock() else { panic!("not told") };
            // SAFETY: the process of the owner has ended.
            *unsafe { orphan.into_guard() } = 2;
        }
    });
    // Only the first one is told.
    assert_eq!(*mutex.lock().unwrap(), 2);
}

/// Looks whether the mutex was locked at all: 1 if it was.
fn unlocked(mutex: &Mutex) -> &u32 {
    if mutex.is_locked() { &1 } else { &0 }
}

#[test]
fn processes_notify_one_another() {
    let mapping = Mapping::shared();
    let (mutex, condvar) = placed(&mapping, (Mutex::new(0), PiCondvarWith::<Shared<NoSpin>>::new()));
    forked(3, |me| {
        let me = me as u32;
        let mut turn = condvar.wait_while(mutex.lock().unwrap(), |turn| *turn != me).unwrap();
        *turn += 1;
        condvar.notify_all(mutex).unwrap();
    });
    assert_eq!(*mutex.lock().unwrap(), 3);
}

#[test]
fn a_killed_waiter_does_no_harm() {
    let mapping = Mapping::shared();
    let (mutex, condvar) = placed(&mapping, (Mutex::new(0), PiCondvarWith::<Shared<NoSpin>>::new()));
    let child = Child::runs(|| {
        let mut turn = mutex.lock().unwrap();
        *turn = u32::MAX;
        drop(condvar.wait_while(turn, |turn| *turn == u32::MAX));
    });
    // A thread that has the mutex now knows: the child has released it, so it counts as a waiter.
    let begun = || *mutex.lock().unwrap() == u32::MAX;
    ulocks_testkit::limit::until("the child waits", begun);
    child.killed();
    *mutex.lock().unwrap() = 0;
    condvar.notify_one(mutex).unwrap();
    forked(2, |me| {
        for nth in 0..500 {
            let mine = 2 * nth + me as u32;
            let mut turn = condvar.wait_while(mutex.lock().unwrap(), |turn| *turn != mine).unwrap();
            *turn += 1;
            drop(turn);
            condvar.notify_one(mutex).unwrap();
        }
    });
    assert_eq!(*mutex.lock().unwrap(), 1_000);
}

#[test]
fn a_private_mutex_serves_threads() {
    let mutex = PiMutexWith::<u32, Private<NoSpin>>::new(0);
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| std::mem::forget(mutex.lock().unwrap()));
        owner.join().unwrap();
    });
    assert!(matches!(mutex.lock(), Err(PiLockError::OwnerGone)));
    let mut mutex = mutex;
    assert_eq!(*mutex.get_mut(), 0);
}
