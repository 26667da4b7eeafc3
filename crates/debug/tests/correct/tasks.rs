//! Correct programs whose tasks acquire checked locks.

use crate::executor::{run, turn};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use ulocks_core::task::{
    AsyncCondvar, AsyncMutex, AsyncRwLock, AsyncRwLockUpgradableReadGuard, AsyncRwLockWriteGuard,
};
use ulocks_debug::*;
use ulocks_psrwlock::{Nested, Urgent};

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
    ("a thread that reads releases what tasks read", || {
        let lock = RwLock::new(1);
        let (mine, at) = (lock.read(), line!());
        let others = (ready(lock.read_async()), ready(lock.read_in_async::<Nested>()));
        let upgradable = ready(lock.upgradable_async());
        let shared = Arc::new(RwLock::new(1));
        let owned = ready(Arc::clone(&shared).read_owned_async());
        drop((upgradable, others, owned));
        let list = held();
        assert_eq!(list.locks().len(), 1, "the read of this thread is listed: {list}");
        assert_eq!(list.locks()[0].at.line(), at);
        drop(mine);
        assert!(!lock.is_locked() && !shared.is_locked());
    }),
    ("guards of a lock that tasks read, write and upgrade, across awaits", || {
        let (lock, log) = (RwLock::new(0), Mutex::new(Vec::new()));
        let task = |id: u32| {
            let (lock, log) = (&lock, &log);
            watch(async move {
                for _ in 0..20 {
                    let mut guard = lock.write_async().await;
                    *guard += 1;
                    turn().await;
                    drop(guard);
                    let seen = *lock.read_async().await;
                    let urgent = lock.read_in_async::<Urgent>().await;
                    turn().await;
                    assert!(*urgent >= seen);
                    drop(urgent);
                    let guard = lock.upgradable_async().await;
                    turn().await;
                    *AsyncRwLockUpgradableReadGuard::upgrade_async(guard).await += 1;
                    log.lock().push(id);
                }
            })
        };
        run(vec![Box::pin(task(1)), Box::pin(task(2)), Box::pin(task(3))]);
        assert_eq!((*lock.read(), log.lock().len()), (120, 60));
    }),
    ("what a task has to write, turned and released on other threads", || {
        let lock = Arc::new(RwLock::new(0));
        let writer = ready(lock.write_async());
        let reader = std::thread::scope(|scope| {
            scope.spawn(move || AsyncRwLockWriteGuard::downgrade(writer)).join().unwrap()
        });
        assert!(held().locks().is_empty() && lock.try_write().is_none());
        drop(reader);
        assert!(lock.try_write().is_some(), "the release was not let through");
        let upgradable = ready(lock.upgradable_async());
        let mut upgrade = pin!(AsyncRwLockUpgradableReadGuard::upgrade_async(upgradable));
        let reads = lock.try_read().unwrap();
        assert!(poll(upgrade.as_mut()).is_pending() && deadlocks().is_empty());
        drop(reads);
        let Poll::Ready(mut writer) = poll(upgrade) else { panic!("it is pending") };
        *writer += 1;
        assert!(held().locks().is_empty() && lock.try_read().is_none());
        std::thread::scope(|scope| _ = scope.spawn(move || drop(writer)));
        let writer = ready(Arc::clone(&lock).write_owned_async());
        std::thread::scope(|scope| _ = scope.spawn(move || drop(writer)));
        let (upgradable, reads) = (ready(lock.upgradable_async()), lock.try_read().unwrap());
        let upgradable = AsyncRwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap_err();
        drop(reads);
        let writer = AsyncRwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap();
        assert!(held().locks().is_empty() && lock.try_read().is_none());
        std::thread::scope(|scope| _ = scope.spawn(move || drop(writer)));
        let upgradable = ready(lock.upgradable_async());
        let reader = std::thread::scope(|scope| {
            scope.spawn(move || AsyncRwLockUpgradableReadGuard::downgrade(upgradable)).join().unwrap()
        });
        assert!(held().locks().is_empty() && lock.try_write().is_none());
        drop(reader);
        assert_eq!(*lock.write(), 1);
    }),
    ("a thread waits to read for a task that writes", || {
        let lock = Arc::new(RwLock::new(1));
        let writer = ready(lock.write_async());
        let other = Arc::clone(&lock);
        let thread = std::thread::spawn(move || *other.read());
        ulocks_testkit::limit::until("the thread waits", || !waiters().is_empty());
        assert!(deadlocks().is_empty());
        drop(writer);
        assert_eq!(thread.join().unwrap(), 1);
    }),
    // It is named by the line of the task.
    ("a lock without a class that a task acquires first", || {
        let ([mutex], owned) = ([0].map(Mutex::new), Arc::<Mutex<u32>>::default());
        let lock = Box::<RwLock<u32>>::default();
        let first = line!() + 1;
        drop(ready(mutex.lock_async()));
        drop(ready(Arc::clone(&owned).lock_owned_async()));
        drop(ready(lock.write_async()));
        let _held = (mutex.lock(), owned.lock(), lock.write());
        let made: Vec<_> = held().locks().iter().filter_map(|held| held.lock.made).collect();
        assert!(made.iter().all(|place| place.file() == file!()), "{made:?}");
        assert_eq!(made.iter().map(|place| place.line()).sum::<u32>(), 3 * first + 3, "{made:?}");
    }),
    ("futures that are dropped leave nothing", || {
        let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
        let clean = || {
            assert!(held().locks().is_empty() && waiters().is_empty() && deadlocks().is_empty());
            assert!(!lock.is_locked() && !mutex.is_locked());
            drop((lock.write(), mutex.lock()));
            drop((lock.read(), mutex.lock()));
        };
        let reads = ready(lock.read_async());
        {
            let mut writes = pin!(lock.write_async());
            let mut behind = pin!(lock.upgradable_async());
            assert!(poll(writes.as_mut()).is_pending() && poll(behind.as_mut()).is_pending());
        }
        drop((reads, lock.write_async(), lock.read_async(), lock.upgradable_async()));
        clean();
        let reads = ready(lock.read_async());
        for polls in [0, 1] {
            let upgradable = ready(lock.upgradable_async());
            let mut upgrade = pin!(AsyncRwLockUpgradableReadGuard::upgrade_async(upgradable));
            assert!((0..polls).all(|_| poll(upgrade.as_mut()).is_pending()));
        }
        drop(reads);
        clean();
        let writes = ready(lock.write_async());
        {
            let mut reads = pin!(lock.read_async());
            let mut nested = pin!(lock.read_in_async::<Nested>());
            assert!(poll(reads.as_mut()).is_pending() && poll(nested.as_mut()).is_pending());
        }
        drop(writes);
        clean();
    }),
    ("waits of tasks and threads on one condition variable", || {
        let (mutex, changed) = (Mutex::new(0), Condvar::new());
        let taker = |takes: u32| {
            let (mutex, changed) = (&mutex, &changed);
            watch(async move {
                for _ in 0..takes {
                    let mut items = mutex.lock_async().await;
                    while *items == 0 {
                        items = changed.wait_async(items).await;
                    }
                    *items -= 1;
                }
            })
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..60 {
                    *mutex.lock() += 1;
                    changed.notify_one();
                }
            });
            scope.spawn(|| {
                for _ in 0..20 {
                    let mut items = mutex.lock();
                    changed.wait_while(&mut items, |items| *items == 0);
                    *items -= 1;
                }
            });
            run(vec![Box::pin(taker(20)), Box::pin(taker(20))]);
        });
        assert_eq!(*mutex.lock(), 0);
    }),
    ("a wait of a task that is dropped passes its notification on", || {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        for is_locked in [false, true] {
            let mut first = Box::pin(changed.wait_async(ready(mutex.lock_async())));
            assert!(poll(first.as_mut()).is_pending());
            let mut second = pin!(changed.wait_async(ready(mutex.lock_async())));
            assert!(poll(second.as_mut()).is_pending());
            assert!(!mutex.is_locked() && waiters().is_empty());
            // With the mutex held it has taken the notification when it is dropped.
            let held = is_locked.then(|| mutex.lock());
            changed.notify_one();
            assert!(!is_locked || poll(first.as_mut()).is_pending());
            drop((first, held));
            let Poll::Ready(guard) = poll(second) else { panic!("the notification is lost") };
            drop(guard);
        }
    }),
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
