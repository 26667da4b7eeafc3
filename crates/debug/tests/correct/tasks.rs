//! Correct programs whose tasks acquire checked locks.

use crate::executor::{run, turn};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use ulocks_core::task::AsyncMutex;
use ulocks_debug::*;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn ready<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is pending"),
    }
}

pub const TABLE: &[(&str, fn())] = &[
    ("a guard of a task, across an await", || {
        let (mutex, log) = (FairMutex::new(0), Mutex::new(Vec::new()));
        let task = |id: u32| {
            let (mutex, log) = (&mutex, &log);
            watch(async move {
                for _ in 0..20 {
                    let mut guard = mutex.lock_async().await;
                    *guard += 1;
                    turn().await;
                    log.lock().push(id);
                }
            })
        };
        run(vec![Box::pin(task(1)), Box::pin(task(2)), Box::pin(task(3))]);
        assert_eq!((*mutex.lock(), log.lock().len()), (60, 60));
    }),
    ("a task acquires on one thread and releases on another", || {
        let mutex = Mutex::new(1);
        for _ in 0..2 {
            let mut guard = ready(mutex.lock_async());
            *guard += 1;
            assert!(held().locks().is_empty() && mutex.try_lock().is_none());
            std::thread::scope(|scope| {
                scope.spawn(move || drop(guard));
            });
            drop(mutex.lock()); // by a thread, as ever
        }
        assert_eq!(*mutex.lock(), 3);
    }),
    ("a thread waits for a task, and a task behind it", || {
        let mutex = Arc::new(FairMutex::new(1));
        let guard = ready(Arc::clone(&mutex).lock_owned_async());
        let other = Arc::clone(&mutex);
        let thread = std::thread::spawn(move || *other.lock());
        ulocks_testkit::limit::until("the thread waits", || !waiters().is_empty());
        {
            let mut behind = pin!(mutex.lock_async());
            assert!(poll(behind.as_mut()).is_pending() && deadlocks().is_empty());
        }
        drop(guard);
        assert_eq!(thread.join().unwrap(), 1);
        assert!(mutex.try_lock().is_some());
    }),
    ("owned permits of tasks", owned),
];

#[cfg(feature = "arc_lock")]
fn owned() {
    let slots = Arc::new(Semaphore::new(1));
    let one = ready(Arc::clone(&slots).acquire_owned_async()).expect("it is open");
    assert!(slots.try_acquire().is_none());
    {
        let mut two = pin!(Arc::clone(&slots).acquire_many_owned_async(2));
        assert!(poll(two.as_mut()).is_pending());
    }
    drop(one);
    assert_eq!(slots.available_permits(), 1);
    assert_eq!(ready(slots.acquire_async()).map(|permit| permit.count()), Ok(1));
}

#[cfg(not(feature = "arc_lock"))]
fn owned() {}
