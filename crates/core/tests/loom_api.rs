//! The typed face in a model: it excludes, it wakes, and a lock that does neither is caught by its
//! data.
#![cfg(world = "loom")]

mod common;
mod guards;

use common::Plain;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use ulocks_core::api;
use ulocks_core::futex::Private;
use ulocks_core::model::{self, Config};
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;

type Mutex<T> = api::Mutex<Plain, T>;
type MutexGuard<'a, T> = api::MutexGuard<'a, Plain, T>;
type MappedMutexGuard<'a, T> = api::MappedMutexGuard<'a, Plain, T>;
type Condvar = api::Condvar<Plain>;

const LATER: Duration = Duration::from_secs(1);

ulocks_core::sync_static! {
    static COUNTER: Mutex<u32> = Mutex::new(0);
}

#[test]
fn a_static_mutex_counts() {
    model::explore(Config::bounded(3), || {
        let others = [(); 2].map(|()| thread::spawn(|| *COUNTER.lock() += 1));
        *COUNTER.lock() += 1;
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*COUNTER.lock(), 3);
    });
}

/// Locks nothing: every acquisition succeeds.
struct Forgotten;

ulocks_core::initial!([] Forgotten = Self);

// SAFETY: none; the model must say so.
unsafe impl RawMutex for Forgotten {
    type Scope = Private;
    type Token = ();
    fn lock(&self) {}
    fn try_lock(&self) -> Option<()> {
        Some(())
    }
    fn lock_until(&self, _: Deadline) -> Option<()> {
        Some(())
    }
    unsafe fn unlock(&self, (): ()) {}
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn a_lock_that_locks_nothing_is_caught_by_its_data() {
    model::finds_bug_saying("Concurrent", Config::default(), || {
        let mutex = Arc::new(api::Mutex::<Forgotten, u32>::new(0));
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || *mutex.lock() += 1)
        };
        *mutex.lock() += 1;
        other.join().unwrap();
    });
}

#[test]
fn two_guards_at_a_time_are_caught() {
    model::finds_bug_saying("currently writing", Config::default(), || {
        let mutex = api::Mutex::<Forgotten, u32>::new(0);
        let guard = mutex.lock();
        let second = mutex.try_lock();
        drop((guard, second));
    });
}

#[test]
fn an_access_lasts_as_long_as_its_guard() {
    model::finds_bug_saying("currently writing", Config::default(), || {
        let mutex = Arc::new(api::Mutex::<Forgotten, (u32, u32)>::new((0, 0)));
        let guard = api::MutexGuard::map(mutex.lock(), |pair| &mut pair.0);
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || drop(mutex.lock()))
        };
        other.join().unwrap();
        drop(guard);
    });
}

#[test]
fn a_timed_lock_ends_both_ways() {
    model::explore(Config { timeouts: 2, ..Config::bounded(3) }, || {
        let mutex = Arc::new(Mutex::new(0));
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || match mutex.try_lock_for(LATER) {
                Some(mut guard) => {
                    *guard += 1;
                    1
                }
                None => 0,
            })
        };
        *mutex.lock() += 1;
        let added = other.join().unwrap();
        assert_eq!(*mutex.lock(), 1 + added);
    });
}

#[test]
fn every_way_of_release_releases() {
    model::explore(Config::bounded(2), || {
        let mutex = Arc::new(Mutex::new([0; 2]));
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || {
                let mut guard = mutex.lock();
                MutexGuard::unlocked(&mut guard, || mutex.lock()[0] += 1);
                MutexGuard::bump(&mut guard);
                MutexGuard::unlock_fair(guard);
            })
        };
        let mut second = MutexGuard::map(mutex.lock(), |pair| &mut pair[1]);
        *second += 1;
        drop(second);
        let guard = MutexGuard::try_map(mutex.lock(), |_| None::<&mut i32>).unwrap_err();
        let first = MappedMutexGuard::map(MutexGuard::map(guard, |pair| &mut pair[..]), |pair| &mut pair[0]);
        MappedMutexGuard::unlock_fair(first);
        other.join().unwrap();
        assert_eq!(*mutex.lock(), [1, 1]);
    });
}

#[test]
fn a_forgotten_guard_can_be_made_up_for() {
    model::explore(Config::default(), || {
        let mutex = Mutex::new(5);
        mem::forget(mutex.lock());
        assert!(mutex.try_lock().is_none());
        assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
        // SAFETY: the forgotten guard held the lock, and no guard or reference is left.
        unsafe { mutex.force_unlock(api::Token::new(())) };
        assert_eq!(format!("{mutex:?}"), "Mutex { data: 5 }");
    });
}

#[test]
fn a_condition_is_waited_for() {
    model::explore(Config::bounded(2), || {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                *shared.0.lock() += 1;
                shared.1.notify_one();
            })
        });
        let mut guard = shared.0.lock();
        shared.1.wait_while(&mut guard, |count| *count < 2);
        assert_eq!(*guard, 2);
        drop(guard);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_condition_is_waited_for_with_a_deadline() {
    model::explore(Config { timeouts: 3, spurious: 1, ..Config::bounded(2) }, || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                *shared.0.lock() = true;
                shared.1.notify_one();
            })
        };
        let mut guard = shared.0.lock();
        let waited = shared.1.wait_while_for(&mut guard, |ready| !*ready, LATER);
        assert_eq!(waited.timed_out(), !*guard);
        drop(guard);
        other.join().unwrap();
    });
}

#[test]
fn a_notification_without_the_condition_is_lost() {
    model::finds_bug_saying("deadlock", Config::bounded(2), || {
        let shared = Arc::new((Mutex::new(()), Condvar::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.1.notify_one())
        };
        // Nothing says that the notification has been given already.
        let mut guard = shared.0.lock();
        shared.1.wait(&mut guard);
        drop(guard);
        other.join().unwrap();
    });
}

#[cfg(feature = "arc_lock")]
#[test]
fn a_guard_can_own_a_share_of_its_mutex() {
    model::explore(Config::bounded(2), || {
        let mutex = Arc::new(Mutex::new(0));
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || *mutex.lock_arc() += 1)
        };
        let mut guard = mutex.lock_arc();
        *guard += 1;
        drop(api::ArcMutexGuard::into_arc(guard));
        other.join().unwrap();
        assert_eq!(*mutex.lock(), 2);
    });
}
