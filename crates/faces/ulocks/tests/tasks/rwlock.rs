//! tokio's `RwLock`: its readers and writers take turns in one queue. Here a writer that waits
//! shuts readers out as well, and readers that waited come in before the next writer.

use super::{is_send_and_sync, task};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Wake};
use ulocks::RwLock;
use ulocks::psrwlock::{Bulk, ByClass, Nested, Urgent};
use ulocks::task::{
    AsyncRwLock, AsyncRwLockReadGuard, AsyncRwLockUpgradableReadGuard, AsyncRwLockWriteGuard,
    MappedAsyncRwLockReadGuard, OwnedAsyncRwLockWriteGuard,
};
use ulocks_testkit::limit::until;

#[test]
fn readers_share_and_a_writer_is_alone() {
    let lock = RwLock::new(1);
    let (one, other) = (task(lock.read_async()).ready(), task(lock.read_async()).ready());
    assert_eq!(*one + *other, 2);
    let writer = task(lock.write_async()).waits();
    drop(one);
    assert_eq!(writer.woken(), 0, "one reader is inside still");
    drop(other);
    assert_eq!(writer.woken(), 1);
    let mut held = writer.ready();
    *held += 1;
    let (reader, second) = (task(lock.read_async()).waits(), task(lock.write_async()).waits());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    drop(held);
    assert_eq!(reader.woken(), 1);
    assert_eq!(*reader.ready(), 2);
    drop(second.ready());
    assert_eq!(lock.into_inner(), 2);
}

#[test]
fn a_reader_does_not_pass_a_writer_that_waits() {
    let lock = RwLock::new(());
    let held = task(lock.read_async()).ready();
    let writer = task(lock.write_async()).waits();
    let late = task(lock.read_async()).waits();
    assert!(lock.try_read().is_none());
    drop(held);
    let held = writer.ready();
    let late = late.waits();
    drop(held);
    assert_eq!(late.woken(), 1);
    drop(late.ready());
    assert!(lock.try_write().is_some());
}

#[test]
fn a_writer_that_is_cancelled_lets_readers_in() {
    let lock = RwLock::new(());
    let held = task(lock.read_async()).ready();
    let writer = task(lock.write_async()).waits();
    let late = task(lock.read_async()).waits();
    drop(writer);
    assert_eq!(late.woken(), 1);
    drop((late.ready(), held));
    assert!(lock.try_write().is_some());
    drop((task(lock.write_async()), task(lock.read_async()))); // never polled
    assert!(lock.try_write().is_some());
}

#[test]
fn what_a_cancelled_task_was_woken_for_goes_on() {
    let lock = RwLock::new(());
    let held = task(lock.write_async()).ready();
    let (first, second) = (task(lock.write_async()).waits(), task(lock.write_async()).waits());
    drop(held);
    assert_eq!([first.woken(), second.woken()], [1, 0]);
    drop(first);
    assert_eq!(second.woken(), 1, "the wake-up is lost");
    drop(second.ready());

    // An owner that waits for a reader, and one that was granted the write side.
    let reader = lock.read();
    let (first, second) = (task(lock.write_async()).waits(), task(lock.write_async()).waits());
    drop(first);
    assert_eq!(second.woken(), 1);
    let second = second.waits();
    drop(reader);
    assert_eq!(second.woken(), 1);
    let held = second.ready();
    let (first, second) = (task(lock.write_async()).waits(), task(lock.write_async()).waits());
    drop(held);
    assert_eq!(first.woken() + second.woken(), 1);
    drop((first, second));
    assert!(lock.try_write().is_some());
}

/// A waker that a drop calls finds the lock free: nothing is left to do.
#[test]
fn a_dropped_owner_calls_wakers_last() {
    static LOCK: RwLock<u32> = RwLock::new(0);
    struct Tries(AtomicUsize);
    impl Wake for Tries {
        fn wake(self: Arc<Self>) {
            let is_free = LOCK.try_write().is_some();
            self.0.fetch_add(if is_free { 1 } else { 100 }, Relaxed);
        }
    }
    let held = LOCK.write();
    let owner = task(LOCK.write_async()).waits();
    let reader = task(LOCK.read_async()).waits();
    drop(held);
    let owner = owner.waits(); // for the queue
    let (tries, mut last) = (Arc::new(Tries(AtomicUsize::new(0))), Box::pin(LOCK.write_async()));
    let waker = Arc::clone(&tries).into();
    assert!(last.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(reader.ready());
    drop(owner);
    assert_eq!(tries.0.load(Relaxed), 1);
    drop(last);
    assert!(LOCK.try_write().is_some());
}

#[test]
fn a_writer_becomes_a_reader_and_lets_no_writer_in_between() {
    let lock = RwLock::new(1);
    let mut held = task(lock.write_async()).ready();
    let (writer, reader) = (task(lock.write_async()).waits(), task(lock.read_async()).waits());
    *held += 1;
    let held = AsyncRwLockWriteGuard::downgrade(held);
    assert_eq!(*reader.ready(), 2);
    let writer = writer.waits();
    assert_eq!(*held, 2);
    drop(held);
    *writer.ready() += 1;
    assert_eq!(*lock.read(), 3);
}

#[test]
fn an_upgradable_reader_becomes_the_writer() {
    let lock = RwLock::new(1);
    let held = task(lock.upgradable_async()).ready();
    let reader = task(lock.read_async()).ready();
    let other = task(lock.upgradable_async()).waits();
    let upgrade = task(AsyncRwLockUpgradableReadGuard::upgrade_async(held)).waits();
    drop(reader);
    assert_eq!(upgrade.woken(), 1);
    let mut held = upgrade.ready();
    *held += 1;
    drop(held);
    let held = other.ready();
    assert_eq!(*held, 2);
    // An upgrade that is cancelled releases the lock, before and after its first poll.
    drop(AsyncRwLockUpgradableReadGuard::upgrade_async(held));
    let (held, reader) = (task(lock.upgradable_async()).ready(), lock.read());
    drop(task(AsyncRwLockUpgradableReadGuard::upgrade_async(held)).waits());
    drop(reader);
    assert!(lock.try_write().is_some());
}

#[test]
fn an_upgradable_reader_becomes_the_writer_at_once_or_a_reader() {
    let lock = RwLock::new(1);
    let (held, reader) = (task(lock.upgradable_async()).ready(), lock.read());
    let held = AsyncRwLockUpgradableReadGuard::try_upgrade(held).expect_err("there is a reader");
    let (other, writer) = (task(lock.upgradable_async()).waits(), task(lock.write_async()).waits());
    drop(reader);
    let mut held = AsyncRwLockUpgradableReadGuard::try_upgrade(held).expect("the reader is gone");
    *held += 1;
    assert!(lock.try_read().is_none());
    drop(held);
    let (held, writer) = (AsyncRwLockUpgradableReadGuard::downgrade(other.ready()), writer.waits());
    assert_eq!(*held, 2);
    drop(held);
    *writer.ready() += 1;
    assert_eq!(*lock.read(), 3);
}

#[test]
fn guards_are_narrowed_to_parts_that_may_go_to_other_threads() {
    let lock = RwLock::new(([1, 2], 3));
    let held = task(lock.write_async()).ready();
    let mut third = AsyncRwLockWriteGuard::map(held, |data| &mut data.1);
    is_send_and_sync(&third);
    let reader = task(lock.read_async()).waits();
    std::thread::scope(|scope| scope.spawn(move || *third += 1).join()).expect("it was written elsewhere");
    assert_eq!(reader.woken(), 1);
    let held = reader.ready();
    assert_eq!(format!("{held:?}"), "([1, 2], 4)");
    let pair = AsyncRwLockReadGuard::map(held, |data| &data.0);
    let pair = MappedAsyncRwLockReadGuard::try_map(pair, |pair| pair.get(2)).map(drop).unwrap_err();
    let second = MappedAsyncRwLockReadGuard::map(pair, |pair| &pair[1]);
    is_send_and_sync(&second);
    assert!(lock.try_write().is_none() && lock.try_read().is_some());
    std::thread::scope(|scope| scope.spawn(move || assert_eq!(second.to_string(), "2")).join())
        .expect("it was read elsewhere");
    assert!(lock.try_write().is_some());
}

#[test]
fn owned_guards_outlive_the_borrow() {
    let lock = Arc::new(RwLock::new(1));
    let held = task(Arc::clone(&lock).read_owned_async()).ready();
    let writer = task(Arc::clone(&lock).write_owned_async()).waits();
    drop(held);
    let mut held = writer.ready();
    *held += 1;
    let reader = task(Arc::clone(&lock).read_owned_async()).waits();
    drop(lock);
    let held = std::thread::spawn(move || OwnedAsyncRwLockWriteGuard::downgrade(held)).join().unwrap();
    assert_eq!((*held, *reader.ready()), (2, 2));
}

#[test]
fn futures_and_guards_may_go_to_other_threads() {
    let lock = RwLock::new(0);
    is_send_and_sync(&lock.upgradable_async());
    is_send_and_sync(&lock.read_async());
    let future = lock.write_async();
    is_send_and_sync(&future);
    std::thread::scope(|scope| {
        let mut held = scope.spawn(|| task(future).ready()).join().unwrap();
        *held += 1;
        let held = scope.spawn(|| AsyncRwLockWriteGuard::downgrade(held)).join().unwrap();
        // This thread has released nothing that it holds, and may read again.
        let again = lock.read();
        scope.spawn(move || drop(held)).join().unwrap();
        assert_eq!(*again, 1);
    });
    assert!(lock.try_write().is_some());
}

#[test]
fn a_thread_and_a_task_take_turns() {
    let lock = RwLock::new(0);
    std::thread::scope(|scope| {
        let held = lock.write();
        let mut task = task(lock.write_async()).waits();
        let threads = [0, 1].map(|_| scope.spawn(|| *lock.write() += 1));
        drop(held);
        until("the task is served", || task.poll().map(|mut held| *held += 1).is_ready());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(lock.into_inner(), 3);
}

/// A writer that waits for a slow reader keeps readers of higher classes out no more than threads.
#[test]
fn tasks_read_in_classes() {
    let lock = RwLock::new(1);
    let slow = task(lock.read_in_async::<Bulk>()).ready();
    let writer = task(lock.write_async()).waits();
    let late = task(lock.read_async()).waits();
    let urgent = task(lock.read_in_async::<Urgent>()).ready();
    assert_eq!(*task(lock.read_in_async::<Nested>()).ready(), 1);
    drop(slow);
    assert_eq!(writer.woken(), 1);
    let writer = writer.waits(); // for the urgent reader
    let behind = task(lock.read_in_async::<Urgent>()).waits();
    drop(urgent);
    assert_eq!(writer.woken(), 1);
    let mut held = writer.ready();
    *held += 1;
    drop(held);
    assert_eq!([late.woken(), behind.woken()], [1, 1]);
    assert_eq!(*late.ready() + *behind.ready(), 4);
    assert!(lock.try_write().is_some());
}
