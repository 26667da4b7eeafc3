//! The condition variable.

use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::condvar::Wakeup;
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
