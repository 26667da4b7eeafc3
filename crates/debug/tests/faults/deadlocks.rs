//! Deadlocks that happen.

use crate::harness::{GO_ON, Places, breaks, circle, fault};
use crate::{Fault, deadlock};
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, mpsc};
use std::time::Duration;
use ulocks_debug::*;
use ulocks_testkit::task::until_asleep;

pub const TABLE: &[Fault] = &[
    deadlock! { "deadlock of two threads", [a = Mutex::new(()), b = FairMutex::new(())]
    a.lock();
    b.lock();
    a.lock();
    b.lock() },
    deadlock! { "deadlock of a reentrant lock", [a = ReentrantMutex::new(()), b = Mutex::new(())]
    (a.lock(), a.lock());
    b.lock();
    a.lock();
    b.lock() },
    // The culprit waits for a thread that waits for the lock in the place of the forgotten one.
    ("a forgotten lock, and another one in its place", || {
        let (mut place, log) = (ManuallyDrop::new(Mutex::new(0)), Mutex::new(()));
        let before = line!() + 1;
        mem::forget(place.lock());
        place = ManuallyDrop::new(Mutex::new(1));
        let (say, hear) = mpsc::channel();
        let (place, log, said) = (&place, &log, say.clone());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _in_place = place.lock();
                say.send(()).unwrap();
                await_waiters(2);
            });
            hear.recv().unwrap();
            scope.spawn(move || {
                let _in_log = log.lock();
                said.send(()).unwrap();
                drop(place.lock());
            });
            hear.recv().unwrap();
            drop(log.lock());
        });
        vec![fault(Rule::NoExit, None, before)]
    }),
    deadlock! { "deadlock of two PiMutexes", [a = PiMutex::new(()), b = PiMutex::new(())]
    a.lock().unwrap();
    b.lock().unwrap();
    a.lock().unwrap();
    b.lock() },
    deadlock! { "deadlock of a semaphore that is a lock, and a mutex", [a = Semaphore::new(1), b = Mutex::new(())]
    a.acquire_as_lock();
    b.lock();
    a.acquire_as_lock();
    b.lock() },
    ("deadlock of three threads, and a fourth that waits outside", || {
        static LOCKS: [Mutex<()>; 3] = [Mutex::new(()), Mutex::new(()), Mutex::new(())];
        GO_ON.store(true, Relaxed);
        static ALL: Barrier = Barrier::new(3);
        let at = line!() + 3;
        let others = [1, 2].map(|index: usize| {
            std::thread::spawn(move || {
                let _first = LOCKS[index].lock();
                ALL.wait();
                drop(LOCKS[(index + 1) % 3].lock());
            })
        });
        let (first, a1) = (LOCKS[0].lock(), line!());
        ALL.wait();
        await_waiters(2);
        let outside = std::thread::spawn(|| drop(LOCKS[0].lock()));
        await_waiters(3);
        breaks(|| drop(LOCKS[1].lock()));
        let a2 = line!() - 1;
        drop(first);
        others.into_iter().for_each(|other| other.join().unwrap());
        outside.join().unwrap();
        let steps = [(a1, a2), (at, at + 2), (at, at + 2)];
        with_order(&steps, &steps)
    }),
    ("deadlock of a wait with a deadline", || {
        static A: Mutex<()> = Mutex::new(());
        static B: Calock<()> = Calock::new(());
        let (in_a, a1) = (A.lock(), line!());
        let (say, hear) = mpsc::channel();
        let other = std::thread::spawn(move || {
            let (_b, b1) = (B.lock(), line!());
            say.send(()).unwrap();
            (b1, (drop(A.lock()), line!()).1)
        });
        hear.recv().unwrap();
        await_waiters(1);
        // No edge leads to a lock with a deadline, so there is no inversion.
        assert!(B.try_lock_for(Duration::from_millis(20)).is_none());
        let b2 = line!() - 1;
        drop(in_a);
        let (b1, a2) = other.join().unwrap();
        vec![circle(Rule::Deadlock, &[(a1, b2), (b1, a2)])]
    }),
];

/// Waits until so many threads wait. They have then looked for a deadlock, and sleep. Otherwise one
/// of them could also report what the caller is about to do.
pub fn await_waiters(count: usize) {
    ulocks_testkit::limit::until("all threads wait", || waiters().len() >= count);
    until_asleep(&waiters().iter().map(|waiter| waiter.thread.tid.cast_signed()).collect::<Vec<_>>());
}

/// A deadlock of threads whose order is wrong, too, and which go on. So the report of the order
/// comes first.
pub fn with_order(steps: &[(u32, u32)], order: &[(u32, u32)]) -> Vec<Places> {
    GO_ON.store(false, Relaxed);
    vec![circle(Rule::Order, order), circle(Rule::Deadlock, steps)]
}

/// How many locks this thread holds.
pub fn held_by_me() -> usize {
    let me = ulocks_core::tid::current();
    held().locks().iter().filter(|held| held.thread.tid == me).count()
}
