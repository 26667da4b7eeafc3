//! Locks that are held across an `.await`.

// They are the faults.
#![allow(clippy::await_holding_lock)]

use crate::executor::{Travels, run, turn};
use crate::harness::{breaks, fault};
use crate::{Fault, awaits};
use std::mem;
use ulocks_core::task::{AsyncCondvar, AsyncMutex, AsyncRwLock, AsyncRwLockUpgradableReadGuard};
use ulocks_debug::*;
use ulocks_psrwlock::Nested;

/// A watched task has a lock of its thread while it waits as a task, for a lock that another task
/// has, or for a notification.
macro_rules! waits {
    ($title:literal, [$($name:ident = $make:expr),*] $taken:expr; $first:expr; $second:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let mut taken = None;
            run(vec![Box::pin(async { taken = Some($taken) })]);
            let task = async {
                let _held = $first;
                $second;
            };
            let task = watch(task);
            breaks(|| run(vec![Box::pin(task)]));
            drop(taken);
            vec![fault(Rule::NoAwait, line!(), line!() + 1)]
        })
    };
}

pub const TABLE: &[Fault] = &[
    awaits! { "an await with a mutex", [mutex = Mutex::new(())]
    mutex.lock() },
    ("the second of two awaits, with a fair mutex", || {
        let mutex = FairMutex::new(0);
        let before = line!() + 4;
        let task = async {
            *mutex.lock() += 1;
            turn().await;
            let mut held = mutex.lock();
            turn().await;
            *held += 1;
        };
        let (task, here) = (watch(task), line!());
        breaks(|| run(vec![Box::pin(task)]));
        assert_eq!(mutex.into_inner(), 1);
        vec![fault(Rule::NoAwait, here, before)]
    }),
    awaits! { "an await with a lock to read", [lock = RwLock::new(())]
    lock.read() },
    awaits! { "an await with a lock to write, upgraded from another", [lock = RwLock::new(())]
    RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) },
    awaits! { "an await with a reentrant mutex", [mutex = ReentrantMutex::new(())]
    (mutex.lock(), mutex.lock()) },
    ("an await with a lock of a function below", || {
        async fn below(mutex: &Mutex<u32>) {
            let held = mutex.lock();
            turn().await;
            drop(held);
        }
        let before = line!() - 4;
        let mutex = Mutex::new(0);
        let (task, here) = (watch(async { below(&mutex).await }), line!());
        breaks(|| run(vec![Box::pin(task)]));
        vec![fault(Rule::NoAwait, here, before)]
    }),
    ("an await after a forgotten guard", || {
        let mutex = Mutex::new(());
        let before = line!() + 2;
        let task = async {
            mem::forget(mutex.lock());
            turn().await;
        };
        let (task, here) = (watch(task), line!());
        breaks(|| run(vec![Box::pin(task)]));
        // SAFETY: the guard of this thread is forgotten.
        unsafe { mutex.force_unlock(ulocks_core::api::Token::new(())) };
        vec![fault(Rule::NoAwait, here, before)]
    }),
    // The inner one reports it, and the outer one does not.
    ("an await of a task that is watched twice", || {
        let mutex = Mutex::new(());
        let before = line!() + 2;
        let task = async {
            let _held = mutex.lock();
            turn().await;
        };
        let (inner, here) = (watch(task), line!());
        let outer = watch(async {
            let mut inner = Box::pin(inner);
            let mut is_caught = false;
            std::future::poll_fn(|context| {
                let poll = breaks(|| inner.as_mut().poll(context));
                is_caught |= poll.is_none();
                if is_caught { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            // The lock is held until here.
            turn().await;
        });
        run(vec![Box::pin(outer)]);
        vec![fault(Rule::NoAwait, here, before)]
    }),
    ("an await on the second thread of a task", || {
        let mutex = Mutex::new(());
        let before = line!() + 4;
        let task = async {
            drop(mutex.lock());
            turn().await;
            let _held = mutex.lock();
            turn().await;
        };
        let (task, here) = (watch(task), line!());
        // It travels before it has a guard, and is dropped by the thread that has made it.
        let mut task = Travels(Box::pin(task));
        assert!(!task.step());
        std::thread::scope(|scope| {
            scope.spawn(move || breaks(|| task.step()));
        });
        vec![fault(Rule::NoAwait, here, before)]
    }),
    ("an await of one of two tasks of a thread", || {
        let (first, second) = (Mutex::new(0), Mutex::new(0));
        let good = async {
            for _ in 0..5 {
                *first.lock() += 1;
                turn().await;
            }
        };
        let before = line!() + 4;
        let bad = async {
            *first.lock() += 1;
            turn().await;
            let mut held = second.lock();
            turn().await;
            *held += 1;
        };
        let (good, bad, here) = (watch(good), watch(bad), line!());
        breaks(|| run(vec![Box::pin(good), Box::pin(bad)]));
        vec![fault(Rule::NoAwait, here, before)]
    }),
    // The task releases a lock that it was given, and acquires another one.
    ("an await with a lock in the place of that of the caller", || {
        let (first, second) = (Mutex::new(()), Mutex::new(()));
        let given = first.lock();
        let before = line!() + 3;
        let task = async {
            drop(given);
            let _held = second.lock();
            turn().await;
        };
        let (task, here) = (watch(task), line!());
        breaks(|| run(vec![Box::pin(task)]));
        vec![fault(Rule::NoAwait, here, before)]
    }),
    waits! { "an await of a task's read", [mutex = Mutex::new(()), lock = RwLock::new(())] lock.write_async().await;
    mutex.lock();
    drop(lock.read_async().await) },
    waits! { "an await of a task's read in a class", [mutex = Mutex::new(()), lock = RwLock::new(())] lock.write_async().await;
    mutex.lock();
    drop(lock.read_in_async::<Nested>().await) },
    waits! { "an await of a task's write", [mutex = Mutex::new(()), lock = RwLock::new(())] lock.read_async().await;
    mutex.lock();
    drop(lock.write_async().await) },
    waits! { "an await of a task's upgradable read", [other = RwLock::new(()), lock = RwLock::new(())] lock.upgradable_async().await;
    other.read();
    drop(lock.upgradable_async().await) },
    waits! { "an await of a task's upgrade", [other = RwLock::new(()), lock = RwLock::new(())] lock.read_async().await;
    other.write();
    drop(AsyncRwLockUpgradableReadGuard::upgrade_async(lock.upgradable_async().await).await) },
    waits! { "an await of a task's wait", [other = FairMutex::new(()), mutex = Mutex::new(()), changed = Condvar::new()] Box::new(());
    other.lock();
    drop(changed.wait_async(mutex.lock_async().await).await) },
];
