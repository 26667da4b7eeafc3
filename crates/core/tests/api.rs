//! The typed face on the machine, which is lock_api's: what the adapter and the condition variable
//! add.
#![cfg(world = "machine")]

mod guards;

use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::api;
use ulocks_core::raw::RawMutex;
use ulocks_testkit::plain::Plain;

type Mutex<T> = api::Mutex<Plain, T>;
type MutexGuard<'a, T> = api::MutexGuard<'a, Plain, T>;
type Condvar = api::Condvar<Plain>;

/// Long enough for any machine; a test that waits for it has failed.
const WATCHDOG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn the_adapter_adds_nothing() {
    assert_eq!(size_of::<api::Raw<Plain>>(), size_of::<Plain>());
    assert_eq!(size_of::<Mutex<()>>(), 4);
    assert_eq!(size_of::<MutexGuard<'_, u8>>(), size_of::<&Mutex<u8>>());
}

#[test]
fn a_timed_lock_gives_up_after_its_time_and_not_before() {
    let mutex = Mutex::new(());
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    let _guard = mutex.lock();
    let start = Instant::now();
    assert!(mutex.try_lock_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let until = Instant::now() + SHORT;
    assert!(mutex.try_lock_until(until).is_none());
    assert!(Instant::now() >= until);
}

#[test]
fn a_timed_lock_gets_what_is_released_in_time() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.try_lock_for(WATCHDOG).is_some());
        drop(guard);
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_forgotten_guard_leaves_a_lock_that_can_be_moved_and_released() {
    let mutex = Mutex::new(5);
    mem::forget(mutex.lock());
    let mut mutex = Box::new(mutex);
    *mutex.get_mut() += 1;
    assert!(mutex.is_locked());
    // SAFETY: the forgotten guard held the lock, and no guard or reference is left.
    unsafe { mutex.force_unlock(api::Token::new(())) };
    assert_eq!(*mutex.lock(), 6);
}

#[test]
fn the_raw_lock_is_within_reach() {
    let raw = api::Raw::new(Plain::new());
    raw.inner().lock();
    let mutex = Mutex::from_raw(raw, 'x');
    assert!(mutex.try_lock().is_none());
    // SAFETY: the lock was acquired on the raw lock above; nothing is borrowed.
    unsafe { mutex.raw().inner().unlock(()) };
    assert_eq!(*mutex.lock(), 'x');
    let (raw, data) = mutex.into_inner_with_raw();
    assert!(!raw.into_inner().is_locked());
    assert_eq!(data, 'x');
}

#[test]
fn a_timed_wait_says_whether_the_condition_came_about() {
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    let mut guard = ready.lock();
    let start = Instant::now();
    assert!(changed.wait_while_for(&mut guard, |ready| !*ready, SHORT).timed_out());
    assert!(start.elapsed() >= SHORT);
    assert!(changed.wait_while_until(&mut guard, |ready| !*ready, Instant::now()).timed_out());
    assert!(ready.is_locked(), "a wait that has timed out holds the lock again");
    thread::scope(|scope| {
        scope.spawn(|| {
            *ready.lock() = true;
            changed.notify_one();
        });
        assert!(!changed.wait_while_for(&mut guard, |ready| !*ready, WATCHDOG).timed_out());
    });
    assert!(*guard);
}

#[test]
fn a_wait_gives_the_lock_away() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    let (say, hear) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = mutex.lock();
            say.send(()).unwrap();
            changed.wait(&mut guard);
        });
        hear.recv().unwrap();
        // Succeeds only once the waiter waits, hence the notification cannot come too early.
        let guard = mutex.try_lock_for(WATCHDOG).expect("a waiter does not hold the lock");
        drop(guard);
        // A wait may end early, never be missed.
        changed.notify_one();
    });
}

#[cfg(feature = "serde")]
#[test]
fn data_is_serialized_through_the_lock() {
    use serde::Deserialize;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, U8Deserializer};
    let source: U8Deserializer<Error> = 3_u8.into_deserializer();
    let mutex = Mutex::<u8>::deserialize(source).unwrap();
    assert_eq!(*mutex.lock(), 3);
}

#[test]
fn the_errors_of_an_interruptible_wait_say_what_to_do() {
    use ulocks_core::interrupt::{Interrupted, WaitError};
    use ulocks_core::time::Deadline;
    assert_eq!(WaitError::at(Deadline::NEVER.interruptible()), WaitError::from(Interrupted));
    assert_eq!(WaitError::at(Deadline::after(std::time::Duration::ZERO)), WaitError::TimedOut);
    assert_eq!(Interrupted.to_string(), WaitError::Interrupted.to_string());
    assert!(Interrupted.to_string().contains("try again"));
    assert!(WaitError::TimedOut.to_string().contains("wait longer"));
}
