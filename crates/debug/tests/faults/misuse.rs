//! Faults in the use of one lock.

use crate::harness::{Places, breaks, fault};
use crate::{Fault, dropped, ends, twice};
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, mpsc};
use ulocks_core::api::{self, Token};
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex;
use ulocks_debug::*;
use ulocks_testkit::Child;
use ulocks_testkit::open::Open;

pub const TABLE: &[Fault] = &[
    ("recursion through a function", || {
        fn inner(mutex: &FairMutex<u32>) -> u32 {
            *mutex.lock()
        }
        let here = line!() - 2;
        let mutex = FairMutex::new(7);
        let (_held, before) = (mutex.lock(), line!());
        breaks(|| inner(&mutex));
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    twice! { "recursion by a mapped guard", NoRecursion [mutex = Mutex::new([1, 2])]
    MutexGuard::map(mutex.lock(), |pair| &mut pair[0]);
    mutex.lock() },
    ("recursion after a forgotten guard", || {
        let mutex = Mutex::new(());
        let before = line!() + 1;
        mem::forget(mutex.lock());
        let here = line!() + 1;
        breaks(|| drop(mutex.lock()));
        clean(&mutex);
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    twice! { "recursion in a subclass", NoRecursion [mutex = Mutex::new(())]
    mutex.lock_nested(1);
    mutex.lock_nested(2) },
    ("a second release: Mutex", second_release::<ulocks_unfair::RawThroughputMutex>),
    ("a second release: FairMutex", second_release::<ulocks_fair::RawFairMutex>),
    ("a release of what was never held", || {
        let mutex = Calock::new(());
        // SAFETY: as in `second_release`.
        breaks(|| unsafe { mutex.force_unlock(Token::new(())) });
        let here = line!() - 1;
        vec![fault(Rule::ReleasedOnce, here, None)]
    }),
    ("a release by another thread: Mutex", foreign_release::<ulocks_unfair::RawThroughputMutex>),
    ("a release by another thread: FairMutex", foreign_release::<ulocks_fair::RawFairMutex>),
    // The moved lock stays held to the end of the thread, which is a fault of its own.
    ("moved, then released", || {
        let mutex = Mutex::new(());
        let before = line!() + 1;
        mem::forget(mutex.lock());
        let moved = ManuallyDrop::new(Box::new(mutex));
        // SAFETY: the lock is held by this thread, at another address.
        breaks(|| unsafe { moved.force_unlock(Token::new(())) });
        let here = line!() - 1;
        vec![fault(Rule::NotMoved, here, before), fault(Rule::NoExit, None, before)]
    }),
    ("moved, then locked", || {
        let mutex = Mutex::new(());
        let before = line!() + 1;
        mem::forget(mutex.lock());
        let moved = ManuallyDrop::new(Box::new(mutex));
        let here = line!() + 1;
        breaks(|| drop(moved.lock()));
        vec![fault(Rule::NotMoved, here, before), fault(Rule::NoExit, None, before)]
    }),
    ("copied, then released", || {
        let mutex = Mutex::new(());
        let (held, before) = (mutex.lock(), line!());
        // SAFETY: a planted fault: a lock is no plain memory. The copy is never dropped.
        let copy = ManuallyDrop::new(unsafe { core::ptr::read(&raw const mutex) });
        // SAFETY: as above.
        breaks(|| unsafe { copy.force_unlock(Token::new(())) });
        let here = line!() - 1;
        drop(held);
        vec![fault(Rule::NotMoved, here, before)]
    }),
    ends! { "a thread ends with a forgotten guard", [a = Mutex::new(())]
    a.lock() },
    ("a thread ends with a leaked guard", || {
        static LOCK: FairMutex<u32> = FairMutex::new(1);
        let before = line!() + 1;
        *FairMutexGuard::leak(LOCK.lock()) = 2;
        vec![fault(Rule::NoExit, None, before)]
    }),
    ("a thread ends with two locks", || {
        static LOCKS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
        let before = line!() + 1;
        mem::forget(LOCKS[0].lock());
        mem::forget(LOCKS[1].lock());
        vec![fault(Rule::NoExit, None, before), fault(Rule::NoExit, None, before + 1)]
    }),
    dropped! { "dropped while held", [mutex = Mutex::new(())]
    mutex.lock();
    drop(mutex) },
    dropped! { "unwrapped while held", [mutex = Calock::new(3)]
    mutex.lock();
    mutex.into_inner() },
    dropped! { "dropped while another thread holds it", [mutex = Arc::new(Mutex::new(()))]
    mutex.lock();
    std::thread::spawn(move || breaks(|| drop(mutex))).join().unwrap() },
    ("a lock lies where one was that is held, and another thread has it", || {
        let mut place = Box::new(Mutex::new(()));
        let before = line!() + 1;
        mem::forget(place.lock());
        let (moved, place) = (mem::replace(&mut *place, Mutex::new(())), &place);
        let ((say, hear), (done, over)) = (mpsc::channel(), mpsc::channel::<()>());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let held = place.lock();
                say.send(()).unwrap();
                _ = over.recv();
                assert_eq!(crate::deadlocks::held_by_me(), 1);
                breaks(|| drop(held));
            });
            hear.recv().unwrap();
            breaks(|| drop(moved));
            drop(done);
        });
        vec![fault(Rule::NotDropped, None, before)]
    }),
    ("a lock lies where one was that is held, and the same thread has it", || {
        let mut place = Box::new(Mutex::new(()));
        let before = line!() + 1;
        mem::forget(place.lock());
        let moved = mem::replace(&mut *place, Mutex::new(()));
        let held = place.lock();
        breaks(|| drop(moved));
        breaks(|| drop(held));
        vec![fault(Rule::NotDropped, None, before)]
    }),
    ("two holders", || {
        let mutex = CheckedMutex::<Open, ()>::new(());
        let (held, before) = (mutex.lock(), line!());
        let here = line!() + 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| breaks(|| drop(mutex.lock())));
            other.join().unwrap();
        });
        drop(held);
        vec![fault(Rule::OneHolder, here, before)]
    }),
    ("fork", || {
        let mutex = Mutex::new(());
        forks((mutex.lock(), line!()))
    }),
    ("a wait with another lock: Condvar", || {
        let (mutex, other, changed) = (Mutex::new(()), Mutex::new(()), Condvar::new());
        let (_other, before) = (other.lock(), line!());
        let (mut held, here) = (mutex.lock(), line!());
        for _ in 0..3 {
            changed.wait_for(&mut held, std::time::Duration::from_millis(1));
        }
        // Once, not each time.
        vec![fault(Rule::NoLockInWait, here, before)]
    }),
    ("a wait with another lock: FairCondvar", || {
        let (mutex, other, changed) = (FairMutex::new(()), Mutex::new(()), FairCondvar::new());
        let (mut held, here) = (mutex.lock(), line!());
        let (_other, before) = (other.try_lock().unwrap(), line!());
        changed.wait_for(&mut held, std::time::Duration::from_millis(1));
        // Only the warning: no thread has asked for the other lock in a way that blocks.
        vec![fault(Rule::NoLockInWait, here, before)]
    }),
    ("the sixty-fifth lock", || {
        let locks: Vec<Mutex<()>> = (0..65).map(|_| Mutex::new(())).collect();
        let here = line!() + 1;
        let guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
        drop(guards);
        let all = held();
        assert!(all.locks().iter().all(|held| held.at.line() != here), "{all}");
        vec![fault(Rule::AtMost64, here, None)]
    }),
    ("seventy locks are dropped while held, one after the other", || {
        let before = line!() + 3;
        for _ in 0..70 {
            let mutex = Box::new(Mutex::new(()));
            mem::forget(mutex.try_lock());
            breaks(|| drop(mutex));
        }
        vec![fault(Rule::NotDropped, None, before); 70]
    }),
    ends! { "a thread ends with a reentrant lock that it has twice", [a = ReentrantMutex::new(())]
    (a.lock(), a.lock()) },
    dropped! { "a reentrant lock is dropped while it is held", [mutex = ReentrantMutex::new(())]
    mutex.try_lock_for(std::time::Duration::from_secs(1));
    drop(mutex) },
];

fn unlock<R: RawMutex<Scope = Local, Token = ()>>() -> Token<R::Token> {
    Token::new(())
}

/// Releases a lock that a forgotten guard has left held, so that its end is no fault.
fn clean<R: RawMutex<Scope = Local, Token = ()>, T>(mutex: &CheckedMutex<R, T>) {
    // SAFETY: the callers have forgotten a guard of this thread.
    unsafe { mutex.force_unlock(unlock::<R>()) };
}

fn second_release<R: RawMutex<Scope = Local, Token = ()>>() -> Vec<Places> {
    let mutex = CheckedMutex::<R, ()>::new(());
    drop(mutex.lock());
    // SAFETY: a planted fault; the checker does not pass it on.
    breaks(|| unsafe { mutex.force_unlock(unlock::<R>()) });
    let here = line!() - 1;
    assert!(!mutex.is_locked());
    drop(mutex.lock());
    vec![fault(Rule::ReleasedOnce, here, None)]
}

fn foreign_release<R: RawMutex<Scope = Local, Token = ()> + Sync>() -> Vec<Places> {
    let mutex = CheckedMutex::<R, ()>::new(());
    let (held, before) = (mutex.lock(), line!());
    let here = line!() + 4;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            // SAFETY: a planted fault; the panic of the report keeps it from happening.
            breaks(|| unsafe { mutex.force_unlock(unlock::<R>()) });
        });
        other.join().unwrap();
    });
    assert!(mutex.is_locked());
    drop(held);
    vec![fault(Rule::OwnerReleases, here, before)]
}

/// A child is made while this thread holds a lock, since this line.
pub fn forks<T>((held, before): (T, u32)) -> Vec<Places> {
    Child::runs(|| {}).ends();
    drop(held);
    vec![fault(Rule::NoFork, None, before)]
}

/// The raw face: a lock without a constructor of this crate.
pub type Unplaced<T> = api::Mutex<Checked<ulocks_unfair::RawBargingMutex>, T>;
