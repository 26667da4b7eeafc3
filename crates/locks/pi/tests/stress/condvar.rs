//! The condition variable.

use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::condvar::Wakeup;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private, Shared};
use ulocks_pi::{PiCondvarWith, PiMutexWith};
use ulocks_testkit::watchdog::watch;

#[test]
fn a_broadcast_reaches_everybody_again_and_again() {
    let _watchdog = watch("a broadcast on PiCondvar", String::new);
    let (round, changed) =
        (PiMutexWith::<(usize, usize), Private>::new((0, 0)), PiCondvarWith::<Private>::new());
    let come = PiCondvarWith::<Private>::new();
    const THREADS: usize = 6;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for mine in 1..=200 {
                    let mut state =
                        changed.wait_while(round.lock().unwrap(), |state| state.0 < mine).unwrap();
                    state.1 += 1;
                    if state.1 == THREADS {
                        come.notify_one(&round).unwrap();
                    }
                }
            });
        }
        for now in 1..=200 {
            *round.lock().unwrap() = (now, 0);
            changed.notify_all(&round).unwrap();
            drop(come.wait_while(round.lock().unwrap(), |state| state.1 < THREADS).unwrap());
        }
    });
}

#[test]
fn a_wait_ends_with_its_deadline_and_not_before() {
    let (mutex, condvar) = (PiMutexWith::<(), Private>::new(()), PiCondvarWith::<Private>::new());
    let deadline = Instant::now() + Duration::from_millis(3);
    let (guard, wakeup) = condvar.wait_until(mutex.lock().unwrap(), deadline).unwrap();
    assert_eq!(wakeup, Wakeup::TimedOut);
    assert!(Instant::now() >= deadline && mutex.is_locked());
    drop(guard);
    assert!(!mutex.is_locked());
    assert_eq!((condvar.notify_one(&mutex), condvar.notify_all(&mutex)), (Ok(0), Ok(0)));
}

/// A place for one item, with a notification for each change; every third wait of a consumer has a
/// deadline that passes soon. With a notification lost, all would sleep.
#[test]
fn every_notification_arrives() {
    const ITEMS: usize = 2_000;
    const THREADS: usize = 3;
    fn check<P: Policy>() {
        let _watchdog = watch("one notification for each item on PiCondvar", String::new);
        let items = PiMutexWith::<usize, P>::new(0);
        let (come, gone) = (PiCondvarWith::<P>::new(), PiCondvarWith::<P>::new());
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (items, come, gone) = (&items, &come, &gone);
                scope.spawn(move || {
                    for _ in 0..ITEMS {
                        let guard = items.lock().unwrap();
                        let mut guard = gone.wait_while(guard, |items| *items == 1).unwrap();
                        *guard += 1;
                        // One producer notifies while it holds the mutex.
                        let held = (thread == 0).then_some(guard);
                        come.notify_one(items).unwrap();
                        drop(held);
                    }
                });
                scope.spawn(move || {
                    for nth in 0..ITEMS {
                        let mut guard = items.lock().unwrap();
                        while *guard == 0 {
                            guard = match nth % 3 {
                                0 => come.wait_for(guard, Duration::from_micros(50)).unwrap().0,
                                _ => come.wait(guard).unwrap(),
                            };
                        }
                        *guard -= 1;
                        drop(guard);
                        gone.notify_one(items).unwrap();
                    }
                });
            }
        });
        assert_eq!(*items.lock().unwrap(), 0);
    }
    check::<Private>();
    check::<Private<NoSpin>>();
    check::<Shared>();
}
