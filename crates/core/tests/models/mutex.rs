//! The typed face of mutexes: it excludes, it wakes, and a lock that does neither is caught by its
//! data.

use super::{DURING_WRITE, OTHERS, RACE, STUCK, some, timed, whole};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::api;
use ulocks_core::interrupt::{InterruptibleCondvar as _, InterruptibleMutex as _, WaitError};
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::time::Deadline;
use ulocks_testkit::open::Open;
use ulocks_testkit::plain::Plain;
use ulocks_testkit::thread::{spawn, with};

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
    explore(some(3), || {
        let others = [(); OTHERS as usize].map(|()| spawn(|| *COUNTER.lock() += 1));
        *COUNTER.lock() += 1;
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*COUNTER.lock(), OTHERS + 1);
    });
}

/// The virtual machine also says where.
#[test]
fn a_lock_that_locks_nothing_is_caught_by_its_data() {
    let _line = line!() + 3;
    let _failure = finds_bug_saying(RACE, whole(), || {
        let mutex = Arc::new(api::Mutex::<Open, u32>::new(0));
        let other = with(&mutex, |mutex| *mutex.lock() += 1);
        *mutex.lock() += 1;
        other.join().unwrap();
    });
    #[cfg(world = "vm")]
    {
        let places = [_line, _line + 1].map(|line| format!("{}:{line}", file!()));
        let said = _failure.verdict.to_string();
        assert!(places.iter().any(|place| said.contains(place)), "{said} names none of {places:?}");
    }
}

#[test]
fn two_guards_at_a_time_are_caught() {
    finds_bug_saying(DURING_WRITE, whole(), || {
        let mutex = api::Mutex::<Open, u32>::new(0);
        let guard = mutex.lock();
        let second = mutex.try_lock();
        drop((guard, second));
    });
}

#[test]
fn an_access_lasts_as_long_as_its_guard() {
    finds_bug_saying(DURING_WRITE, whole(), || {
        let mutex = Arc::new(api::Mutex::<Open, (u32, u32)>::new((0, 0)));
        let guard = api::MutexGuard::map(mutex.lock(), |pair| &mut pair.0);
        let other = with(&mutex, |mutex| drop(mutex.lock()));
        other.join().unwrap();
        drop(guard);
    });
}

#[test]
fn a_timed_lock_ends_both_ways() {
    explore(timed(2, some(3)), || {
        let mutex = Arc::new(Mutex::new(0));
        let others = [(); OTHERS as usize - 1].map(|()| {
            with(&mutex, |mutex| match mutex.try_lock_for(LATER) {
                Some(mut guard) => {
                    *guard += 1;
                    1
                }
                None => 0,
            })
        });
        *mutex.lock() += 1;
        let added: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(*mutex.lock(), 1 + added);
    });
}

#[test]
fn every_way_of_release_releases() {
    explore(some(2), || {
        let mutex = Arc::new(Mutex::new([0; 2]));
        let other = with(&mutex, |mutex| {
            let mut guard = mutex.lock();
            MutexGuard::unlocked(&mut guard, || mutex.lock()[0] += 1);
            MutexGuard::bump(&mut guard);
            MutexGuard::unlock_fair(guard);
        });
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
    explore(whole(), || {
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
    explore(some(2), || {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let others = [(); OTHERS as usize].map(|()| {
            with(&shared, |(count, changed)| {
                *count.lock() += 1;
                changed.notify_one();
            })
        });
        let mut guard = shared.0.lock();
        shared.1.wait_while(&mut guard, |count| *count < OTHERS);
        assert_eq!(*guard, OTHERS);
        drop(guard);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_condition_is_waited_for_with_a_deadline() {
    explore(Config { spurious: 1, ..timed(3, some(2)) }, || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = with(&shared, |(ready, changed)| {
            *ready.lock() = true;
            changed.notify_one();
        });
        let mut guard = shared.0.lock();
        let waited = shared.1.wait_while_for(&mut guard, |ready| !*ready, LATER);
        assert_eq!(waited.timed_out(), !*guard);
        drop(guard);
        other.join().unwrap();
    });
}

#[test]
fn a_notification_without_the_condition_is_lost() {
    finds_bug_saying(STUCK, some(2), || {
        let shared = Arc::new((Mutex::new(()), Condvar::new()));
        let other = with(&shared, |(_, changed)| changed.notify_one());
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
    explore(some(2), || {
        let mutex = Arc::new(Mutex::new(0));
        let other = {
            let mutex = Arc::clone(&mutex);
            spawn(move || *mutex.lock_arc() += 1)
        };
        let mut guard = mutex.lock_arc();
        *guard += 1;
        drop(api::ArcMutexGuard::into_arc(guard));
        other.join().unwrap();
        assert_eq!(*mutex.lock(), 2);
    });
}

/// No signal comes, so each wait ends by its deadline or with the lock, whose data the model
/// watches.
#[test]
fn an_interruptible_lock_ends_both_ways() {
    explore(timed(2, some(3)), || {
        let mutex = Arc::new(Mutex::new(0));
        let others = [(); OTHERS as usize - 1].map(|()| {
            with(&mutex, |mutex| match mutex.lock_interruptible_until(Deadline::after(LATER)) {
                Ok(mut guard) => {
                    *guard += 1;
                    1
                }
                Err(error) => {
                    assert_eq!(error, WaitError::TimedOut);
                    0
                }
            })
        });
        *mutex.lock_interruptible().expect("no signal comes") += 1;
        let added: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(*mutex.lock(), 1 + added);
    });
}

#[test]
fn an_interruptible_wait_is_notified() {
    explore(some(2), || {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let other = with(&shared, |(mutex, changed)| {
            *mutex.lock() += 1;
            changed.notify_one();
        });
        let (mutex, changed) = &*shared;
        let mut guard = mutex.lock();
        while *guard == 0 {
            assert_eq!(changed.wait_interruptible(&mut guard), Ok(()), "no signal comes");
        }
        drop(guard);
        other.join().unwrap();
    });
}
