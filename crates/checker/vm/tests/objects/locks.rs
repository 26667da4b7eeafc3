//! Locks, condition variables, barriers, and what happens once.

use crate::{Plain, all_outcomes};
use std::time::Duration;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{
    Arc, AtomicU32, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, spin_until,
};
use ulocks_vm::thread;

#[test]
fn a_mutex_excludes_and_orders() {
    let model = || {
        let data = Arc::new(Mutex::new(Plain::default()));
        let add = |data: &Arc<Mutex<Plain>>| {
            let data = Arc::clone(data);
            thread::spawn(move || data.lock().unwrap().add(1))
        };
        let (one, two) = (add(&data), add(&data));
        let three = data.lock().unwrap().add(1);
        (one.join().unwrap(), two.join().unwrap(), three)
    };
    all_outcomes(model, [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]);
}

#[test]
fn threads_that_come_from_elsewhere_take_a_mutex_in_each_order() {
    for (reads_of_one, reads_of_two) in [(0, 1), (1, 0), (1, 1), (2, 1)] {
        let model = move || {
            let (word, order) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
            let come = |number, reads| {
                let (word, order) = (Arc::clone(&word), Arc::clone(&order));
                thread::spawn(move || {
                    (0..reads).for_each(|_| _ = word.load(Relaxed));
                    order.lock().unwrap().push(number);
                })
            };
            let (one, two) = (come(1, reads_of_one), come(2, reads_of_two));
            one.join().unwrap();
            two.join().unwrap();
            order.lock().unwrap().clone()
        };
        all_outcomes(model, [vec![1, 2], vec![2, 1]]);
    }
}

#[test]
fn a_try_lock_fails_while_the_mutex_is_held() {
    let model = || {
        let data = Arc::new(Mutex::new(0));
        let other = Arc::clone(&data);
        let other = thread::spawn(move || *other.lock().unwrap() += 1);
        let seen = data.try_lock().ok().map(|data| *data);
        other.join().unwrap();
        seen
    };
    all_outcomes(model, [None, Some(0), Some(1)]);
}

#[test]
fn two_mutexes_in_two_orders_deadlock() {
    finds_bug_saying("deadlock", Config::exhaustive(), || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let other = thread::spawn(move || {
            let _second = other.1.lock();
            let _first = other.0.lock();
        });
        let _first = locks.0.lock();
        let _second = locks.1.lock();
        drop((_first, _second));
        other.join().unwrap();
    });
}

#[test]
fn readers_share_and_a_writer_excludes() {
    let model = || {
        let lock = Arc::new(RwLock::new((Plain::default(), 0)));
        let reader = |lock: &Arc<RwLock<(Plain, u32)>>| {
            let lock = Arc::clone(lock);
            thread::spawn(move || lock.read().unwrap().0.get())
        };
        let (one, two) = (reader(&lock), reader(&lock));
        lock.write().unwrap().0.add(1);
        (one.join().unwrap(), two.join().unwrap())
    };
    all_outcomes(model, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[test]
fn two_readers_are_inside_at_once() {
    let model = || {
        let lock = Arc::new(RwLock::new(()));
        let other = Arc::clone(&lock);
        let guard = lock.read().unwrap();
        let other = thread::spawn(move || (other.try_read().is_ok(), other.try_write().is_ok()));
        let seen = other.join().unwrap();
        drop(guard);
        seen
    };
    all_outcomes(model, [(true, false)]);
}

#[test]
fn a_notified_waiter_sees_what_the_mutex_orders() {
    explore(Config::exhaustive(), || {
        let shared = Arc::new((Mutex::new(false), Condvar::new(), Plain::default()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.2.add(1);
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let ready = shared.1.wait_while(shared.0.lock().unwrap(), |ready| !*ready).unwrap();
        assert_eq!(shared.2.get(), 1);
        drop(ready);
        other.join().unwrap();
    });
}

/// The notification may come between the look and the wait.
#[test]
fn a_condition_that_is_not_looked_at_under_the_mutex_is_missed() {
    finds_bug_saying("deadlock", Config::exhaustive(), || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let ready = *shared.0.lock().unwrap();
        if !ready {
            drop(shared.1.wait(shared.0.lock().unwrap()));
        }
        other.join().unwrap();
    });
}

/// Each of two waiters may be the one that is woken.
#[test]
fn a_notification_wakes_any_waiter() {
    let model = || {
        let shared = Arc::new((Mutex::new((0, 0)), Condvar::new()));
        let waiter = |number: u32| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut state = shared.0.lock().unwrap();
                state.0 += 1;
                let mut state = shared.1.wait(state).unwrap();
                if state.1 == 0 {
                    state.1 = number;
                }
            })
        };
        let waiters = [waiter(1), waiter(2)];
        let mut arrived = 0;
        spin_until(|| {
            arrived = shared.0.lock().unwrap().0;
            arrived == 2
        });
        shared.1.notify_one();
        let mut first = 0;
        spin_until(|| {
            first = shared.0.lock().unwrap().1;
            first != 0
        });
        shared.1.notify_one();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        first
    };
    all_outcomes(model, [1, 2]);
}

#[test]
fn a_timed_wait_times_out_or_is_notified() {
    let model = || {
        let shared = Arc::new((Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.1.notify_one());
        let guard = shared.0.lock().unwrap();
        let (guard, result) = shared.1.wait_timeout(guard, Duration::from_millis(1)).unwrap();
        drop(guard);
        other.join().unwrap();
        result.timed_out()
    };
    all_outcomes(model, [false, true]);
}

#[test]
fn a_barrier_orders_and_has_one_leader() {
    explore(Config::exhaustive(), || {
        let shared = Arc::new((Barrier::new(2), Plain::default()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.1.add(1);
            other.0.wait().is_leader()
        });
        let leads = shared.0.wait().is_leader();
        assert_eq!(shared.1.get(), 1);
        assert!(leads ^ other.join().unwrap());
    });
}

#[test]
fn what_is_made_once_is_seen_by_all() {
    explore(Config::exhaustive(), || {
        let shared = Arc::new((Once::new(), OnceLock::new(), Plain::default()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.0.call_once(|| discard(other.2.add(1)));
            assert_eq!(other.2.get(), 1);
            *other.1.get_or_init(|| 1)
        });
        shared.0.call_once(|| discard(shared.2.add(1)));
        assert_eq!(shared.2.get(), 1);
        assert_eq!(*shared.1.get_or_init(|| 2), other.join().unwrap());
        let lazy = LazyLock::new(|| shared.1.get().copied());
        assert_eq!(*lazy, shared.1.get().copied());
    });
}

/// A relaxed flag tells a thread that something was made, and does not order it.
#[test]
fn what_is_made_once_may_not_be_seen_yet() {
    let model = |order| {
        move || {
            let shared = Arc::new((Once::new(), OnceLock::new(), AtomicU32::new(0)));
            let other = Arc::clone(&shared);
            let other = thread::spawn(move || {
                other.0.call_once(|| ());
                other.1.set(1).unwrap();
                other.2.store(1, order);
            });
            let flag = shared.2.load(Acquire);
            let seen = (shared.1.get().copied(), shared.0.is_completed());
            other.join().unwrap();
            assert_eq!((shared.1.get(), shared.0.is_completed()), (Some(&1), true));
            (flag, seen)
        }
    };
    let early = [(None, false), (None, true), (Some(1), true)];
    let all = [0, 1].map(|flag| early.map(|seen| (flag, seen)));
    all_outcomes(model(Relaxed), [all[0][0], all[0][1], all[0][2], all[1][0], all[1][1], all[1][2]]);
    all_outcomes(model(Release), [all[0][0], all[0][1], all[0][2], all[1][2]]);
}

/// What is found is known, with what its maker did before.
#[test]
fn what_is_found_was_made_in_an_ordered_way() {
    explore(Config::exhaustive(), || {
        let shared = Arc::new((OnceLock::new(), Plain::default()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.0.get_or_init(|| other.1.add(1)).to_owned());
        if shared.0.get().is_some() {
            assert_eq!(shared.1.get(), 1);
        }
        assert_eq!(other.join().unwrap(), 1);
    });
}

/// The wait goes on until the value can be seen.
#[test]
fn a_loop_until_something_is_made_ends() {
    explore(Config::exhaustive(), || {
        let shared = Arc::new(OnceLock::new());
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || other.set(1));
        while shared.get().is_none() {}
        assert_eq!((shared.get(), other.join().unwrap()), (Some(&1), Ok(())));
    });
}

fn discard<T>(_: T) {}
