//! Waits on condition variables with a lock held, and what is known of the notifiers.

use crate::Fault;
use crate::harness::fault;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::time::Duration;
use ulocks_core::task::{AsyncCondvar, AsyncMutex};
use ulocks_debug::*;
use ulocks_testkit::limit::until;

/// Notifies without a lock once the mutex is released to wait, until the wait has ended.
fn ends_the_wait(mutex: &Mutex<()>, changed: &Condvar, has_ended: &AtomicBool) {
    until("a thread waits", || !mutex.is_locked());
    until("the wait ends", || {
        changed.notify_all();
        std::thread::sleep(Duration::from_millis(1));
        has_ended.load(Relaxed)
    });
}

/// Waits with the second lock held, without a deadline. The line of the caller is that of both
/// acquisitions.
#[track_caller]
fn waits_with(mutex: &Mutex<()>, outer: &FairMutex<()>, changed: &Condvar) {
    let _outer = outer.lock();
    let mut held = mutex.lock();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| ends_the_wait(mutex, changed, &has_ended));
        changed.wait(&mut held);
        has_ended.store(true, Relaxed);
    });
}

/// Notifies under the second lock and the mutex.
fn notifies_under(mutex: &Mutex<()>, outer: &FairMutex<()>, changed: &Condvar) {
    let _outer = outer.lock();
    let _held = mutex.lock();
    changed.notify_one();
}

type Parts = (Mutex<()>, FairMutex<()>, Condvar);

pub const TABLE: &[Fault] = &[
    ("a wait with the lock of all notifiers", || {
        let (mutex, outer, changed) = Parts::default();
        notifies_under(&mutex, &outer, &changed);
        notifies_under(&mutex, &outer, &changed);
        waits_with(&mutex, &outer, &changed);
        vec![fault(Rule::NoLockOfNotifier, line!() - 1, line!() - 1)]
    }),
    ("a wait with a lock that one of two notifiers has", || {
        let (mutex, outer, changed) = Parts::default();
        notifies_under(&mutex, &outer, &changed);
        changed.notify_one();
        notifies_under(&mutex, &outer, &changed);
        waits_with(&mutex, &outer, &changed);
        vec![fault(Rule::NoLockInWait, line!() - 1, line!() - 1)]
    }),
    ("a wait with the lock of all notifiers, with a deadline", || {
        let (mutex, outer, changed) = Parts::default();
        notifies_under(&mutex, &outer, &changed);
        let (_outer, before) = (outer.lock(), line!());
        let (mut held, here) = (mutex.lock(), line!());
        changed.wait_for(&mut held, Duration::from_millis(1));
        vec![fault(Rule::NoLockInWait, here, before)]
    }),
    // What a dropped task passes on was notified under the lock.
    ("a wait with the lock of all notifiers, after one of a task that was dropped", || {
        let (mutex, outer, changed) = Parts::default();
        for is_taken in [false, true] {
            let mut task = Box::pin(async { drop(changed.wait_async(mutex.lock_async().await).await) });
            let mut poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(poll().is_pending());
            notifies_under(&mutex, &outer, &changed);
            // It waits for the mutex then.
            let held = is_taken.then(|| mutex.lock());
            assert!(!is_taken || poll().is_pending());
            drop((task, held));
        }
        waits_with(&mutex, &outer, &changed);
        vec![fault(Rule::NoLockOfNotifier, line!() - 1, line!() - 1)]
    }),
    ("a wait with a lock like that of all notifiers", || {
        let (mutex, outer, changed) = Parts::default();
        notifies_under(&mutex, &FairMutex::new(()), &changed);
        waits_with(&mutex, &outer, &changed);
        vec![fault(Rule::NoLockInWait, line!() - 1, line!() - 1)]
    }),
];
