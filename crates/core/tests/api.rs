//! The typed face on the machine.
#![cfg(world = "machine")]

mod common;

use common::Plain;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::api;
use ulocks_core::raw::RawMutex;
use ulocks_testkit as _;

type Mutex<T> = api::Mutex<Plain, T>;
type MutexGuard<'a, T> = api::MutexGuard<'a, Plain, T>;
type MappedMutexGuard<'a, T> = api::MappedMutexGuard<'a, Plain, T>;
type Condvar = api::Condvar<Plain>;

/// Long enough for any machine; a test that waits for it has failed.
const WATCHDOG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(5);

static COUNTER: Mutex<u64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

#[test]
fn a_static_mutex_counts() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    *COUNTER.lock() += 1;
                }
            });
        }
    });
    assert_eq!(*COUNTER.lock(), 4_000);
    CHANGED.notify_all();
}

#[test]
fn the_adapter_adds_nothing() {
    assert_eq!(size_of::<api::Raw<Plain>>(), size_of::<Plain>());
    assert_eq!(size_of::<Mutex<()>>(), 4);
    assert_eq!(size_of::<MutexGuard<'_, u8>>(), size_of::<&Mutex<u8>>());
}

#[test]
fn guards_are_sync_and_the_mutex_is_both() {
    fn is_sync<T: Sync + ?Sized>() {}
    fn is_send<T: Send + ?Sized>() {}
    is_sync::<Mutex<u8>>();
    is_send::<Mutex<u8>>();
    is_sync::<Mutex<std::cell::Cell<u8>>>();
    is_sync::<MutexGuard<'_, u8>>();
    is_sync::<MappedMutexGuard<'_, str>>();
    is_sync::<Condvar>();
    is_send::<Condvar>();
}

#[test]
fn trying_does_not_wait() {
    let mutex = Mutex::new(1);
    let guard = mutex.try_lock().unwrap();
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert!(!mutex.is_locked());
    assert_eq!(mutex.into_inner(), 1);
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
fn guards_map_to_parts() {
    let mutex = Mutex::new((1, [2, 3]));
    {
        let mut last =
            MappedMutexGuard::map(MutexGuard::map(mutex.lock(), |pair| &mut pair.1), |two| &mut two[1]);
        *last = 4;
        assert!(mutex.is_locked());
    }
    let guard = MutexGuard::try_map(mutex.lock(), |_| None::<&mut i32>).unwrap_err();
    assert_eq!(*guard, (1, [2, 4]));
    drop(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn a_guard_unlocks_for_a_while() {
    let mutex = Mutex::new(0);
    let mut guard = mutex.lock();
    MutexGuard::unlocked(&mut guard, || *mutex.lock() += 1);
    MutexGuard::unlocked_fair(&mut guard, || *mutex.lock() += 1);
    MutexGuard::bump(&mut guard);
    assert_eq!(*guard, 2);
    MutexGuard::unlock_fair(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn a_panic_while_unlocked_leaves_the_guard_whole() {
    let mutex = Mutex::new(0);
    let mut guard = mutex.lock();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        MutexGuard::unlocked(&mut guard, || {
            assert!(!mutex.is_locked());
            panic!("while unlocked");
        });
    }));
    assert!(caught.is_err());
    assert!(mutex.is_locked());
    *guard += 1;
    drop(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn a_panic_releases_the_guards_it_passes() {
    let mutex = Mutex::new([0, 0]);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.lock();
        guard[0] = 1;
        let _mapped = MutexGuard::map(guard, |_| -> &mut i32 { panic!("while mapping") });
    }));
    assert!(caught.is_err());
    assert_eq!(*mutex.lock(), [1, 0]);
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
fn it_shows_its_data_or_that_it_is_locked() {
    let mutex = Mutex::<u8>::from(7);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 7 }");
    let guard = mutex.lock();
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
    assert_eq!(format!("{guard} {guard:?}"), "7 7");
    assert_eq!(*Mutex::<u8>::default().lock(), 0);
    assert_eq!(format!("{:?}", Condvar::default()), "Condvar { .. }");
}

#[test]
fn unsized_data_works() {
    let mutex: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
    mutex.lock()[0] = 9;
    assert_eq!(mutex.lock().iter().sum::<u8>(), 14);
}

#[test]
fn a_condition_is_waited_for() {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        for me in 0..4 {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || {
                for round in 0..100 {
                    let mut guard = turn.lock();
                    changed.wait_while(&mut guard, |turn| *turn != round * 4 + me);
                    *guard += 1;
                    changed.notify_all();
                }
            });
        }
    });
    assert_eq!(turn.into_inner(), 400);
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

#[cfg(feature = "arc_lock")]
#[test]
fn a_guard_can_own_a_share_of_its_mutex() {
    use std::sync::Arc;
    let mutex = Arc::new(Mutex::new(1));
    let mut guard = mutex.lock_arc();
    drop(Arc::clone(&mutex));
    *guard += 1;
    assert!(mutex.try_lock_arc().is_none());
    assert!(mutex.try_lock_arc_for(SHORT).is_none());
    assert_eq!(Arc::strong_count(&api::ArcMutexGuard::into_arc(guard)), 2);
    assert_eq!(*mutex.lock(), 2);
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
