//! The condition variable.

use crate::mutex::sampled;
use crate::tickets::{all_at_once, one_by_one, one_gives_up};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::condvar::Wakeup;
use ulocks_core::model::{Config, explore, set_priority};
use ulocks_core::spin::NoSpin;
use ulocks_pi::{PiCondvar, PiCondvarWith, PiMutex, PiMutexWith};
use ulocks_testkit::thread::with;

type Exact = ulocks_core::Private<NoSpin>;
/// The first waiter polls before it sleeps.
type Patient = ulocks_core::Private;

const MANY: [usize; 3] = [2, 4, 8];

#[test]
fn everybody_is_notified_by_a_holder_and_by_others() {
    for waiters in MANY {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Exact>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 2), move || one_by_one::<Exact>(waiters));
    }
    for while_holding in [false, true] {
        explore(Config::exhaustive(), move || all_at_once::<Exact>(1, while_holding));
    }
}

#[test]
fn a_lone_spinner_is_notified_and_so_are_others_beside_it() {
    for while_holding in [false, true] {
        explore(Config::exhaustive(), move || all_at_once::<Patient>(1, while_holding));
        for waiters in MANY {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Patient>(waiters, while_holding));
        }
    }
    for waiters in MANY {
        explore(sampled(2 * waiters, 2), move || one_by_one::<Patient>(waiters));
    }
    explore(Config { spurious: 1, ..Config::sampled(20_000) }, one_gives_up::<Patient>);
}

#[test]
fn a_waiter_that_gives_up_takes_no_notification_with_it() {
    explore(Config { spurious: 1, ..Config::sampled(20_000) }, one_gives_up::<Exact>);
}

/// The face that people use, with data that the machine watches.
#[test]
fn the_typed_face_hands_data_over() {
    explore(Config::sampled(3_000), || {
        let state = Arc::new((PiMutex::new(0), PiCondvar::new()));
        let other = with(&state, |state| {
            let (mutex, condvar) = state;
            *mutex.lock().unwrap() += 1;
            condvar.notify_one(mutex).unwrap();
        });
        let (mutex, condvar) = &*state;
        let seen = condvar.wait_while(mutex.lock().unwrap(), |count| *count == 0).unwrap();
        assert_eq!(*seen, 1);
        let (seen, wakeup) = condvar.wait_for(seen, Duration::from_millis(1)).unwrap();
        assert_eq!((*seen, wakeup == Wakeup::Notified || wakeup == Wakeup::TimedOut), (1, true));
        drop(seen);
        other.join().unwrap();
    });
}

/// Three that wait, of priorities that do not follow their arrival. Where all were asleep to be
/// moved to the mutex, they are served by priority.
#[test]
fn who_waits_is_served_by_priority() {
    let all_slept = Rc::new(Cell::new(0));
    let counted = Rc::clone(&all_slept);
    explore(Config::sampled(3_000), move || {
        let served =
            Arc::new((PiMutexWith::<_, Exact>::new((false, Vec::new())), PiCondvarWith::<Exact>::new()));
        let waiters = [1, 3, 2].map(|priority| {
            with(&served, move |served| {
                set_priority(priority);
                let (mutex, condvar) = served;
                let mut state = condvar.wait_while(mutex.lock().unwrap(), |(go, _)| !*go).unwrap();
                state.1.push(priority);
            })
        });
        let (mutex, condvar) = &*served;
        let mut state = mutex.lock().unwrap();
        state.0 = true;
        let moved = condvar.notify_all(mutex).unwrap();
        drop(state);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        if moved == 3 {
            counted.set(counted.get() + 1);
            assert_eq!(mutex.lock().unwrap().1, [3, 2, 1]);
        }
    });
    assert!(all_slept.get() > 100, "{} executions show anything", all_slept.get());
}
