//! The condition variable: threads that a notification wakes, among others that want the
//! lock.

use std::thread;
use std::time::Duration;
use ulocks_calock::{CalockCondvarWith, CalockWith, Every};
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::Rule;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::watchdog::watch;

macro_rules! with_each {
    ($check:ident) => {
        $check::<Private, Every>();
        $check::<Private<NoSpin>, Every<100_000>>();
        $check::<Private<NoSpin>, Every>();
    };
}

/// Waiters see every round, which one thread begins; the mutex is contended by others that know
/// nothing of rounds.
fn everybody_sees_every_round<P: InOneProcess, I: Rule>(waiters: usize, rounds: usize, bargers: usize) {
    struct Rounds {
        now: usize,
        seen: usize,
    }
    let _watchdog = watch("a broadcast under a calock", move || format!("{waiters} waiters"));
    let state = CalockWith::<_, P, I>::new(Rounds { now: 0, seen: waiters });
    let (begun, over) = (CalockCondvarWith::<P, I>::new(), CalockCondvarWith::<P, I>::new());
    thread::scope(|scope| {
        for me in 0..waiters {
            let (state, begun, over) = (&state, &begun, &over);
            scope.spawn(move || {
                let mut state = state.lock();
                for mine in 1..=rounds {
                    while state.now < mine {
                        if me % 4 == 0 {
                            begun.wait_for(&mut state, Duration::from_micros(300));
                        } else {
                            begun.wait(&mut state);
                        }
                    }
                    state.seen += 1;
                    if state.seen == waiters {
                        over.notify_one();
                    }
                }
            });
        }
        for _ in 0..bargers {
            scope.spawn(|| {
                while state.lock().now < rounds {
                    (0..100).for_each(|_| std::hint::spin_loop());
                }
            });
        }
        for now in 1..=rounds {
            let mut state = state.lock();
            while state.seen < waiters {
                over.wait(&mut state);
            }
            (state.now, state.seen) = (now, 0);
            if now % 2 == 0 {
                drop(state);
            }
            begun.notify_all();
        }
    });
    assert_eq!(state.lock().seen, waiters);
    assert!(!state.is_locked());
}

#[test]
fn a_broadcast_reaches_everybody_again_and_again() {
    fn check<P: InOneProcess, I: Rule>() {
        everybody_sees_every_round::<P, I>(16, 200, 0);
    }
    with_each!(check);
}

#[test]
fn a_broadcast_reaches_everybody_on_a_busy_mutex() {
    fn check<P: InOneProcess, I: Rule>() {
        everybody_sees_every_round::<P, I>(16, 100, 4);
    }
    with_each!(check);
}

#[test]
fn a_broadcast_reaches_hundreds() {
    everybody_sees_every_round::<Private, Every>(400, 5, 2);
    everybody_sees_every_round::<Private<NoSpin>, Every<100_000>>(400, 5, 0);
}

/// A place for one item, with a notification for each change; every third wait of a consumer has a
/// deadline that passes soon. With a notification lost, all would sleep.
#[test]
fn every_notification_arrives() {
    const ITEMS: usize = 1_000;
    const THREADS: usize = 6;
    fn check<P: InOneProcess, I: Rule>() {
        let _watchdog = watch("one notification for each item under a calock", String::new);
        let items = CalockWith::<usize, P, I>::new(0);
        let (come, gone) = (CalockCondvarWith::<P, I>::new(), CalockCondvarWith::<P, I>::new());
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (items, come, gone) = (&items, &come, &gone);
                scope.spawn(move || {
                    for _ in 0..ITEMS {
                        let mut guard = items.lock();
                        while *guard == 1 {
                            gone.wait(&mut guard);
                        }
                        *guard += 1;
                        // Every second producer notifies while it holds the lock.
                        let held = (thread % 2 == 0).then_some(guard);
                        come.notify_one();
                        drop(held);
                    }
                });
                scope.spawn(move || {
                    for nth in 0..ITEMS {
                        let mut guard = items.lock();
                        while *guard == 0 {
                            if nth % 3 == 0 {
                                come.wait_for(&mut guard, Duration::from_micros(50));
                            } else {
                                come.wait(&mut guard);
                            }
                        }
                        *guard -= 1;
                        drop(guard);
                        gone.notify_one();
                    }
                });
            }
        });
        assert_eq!(*items.lock(), 0);
    }
    with_each!(check);
}
